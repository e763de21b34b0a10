import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { GUARDED_SERVERS, type GuardedServer } from '../support/guarded-servers.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';

for (const [name, start] of Object.entries(GUARDED_SERVERS))
  describe(`limits, held by bearerAuth for ${name}`, () => {
    let test: TestKeys;
    let server: GuardedServer;
    before(async () => {
      test = await openTestKeys();
    });
    afterEach(() => server.stop());
    after(() => test.store.close());
    let count = 0;
    const create = async (fields: object) => {
      count += 1;
      return (await test.keys.create({ name: `Key ${count}`, roles: ['GUEST'], ...fields }, OPERATOR)).secret;
    };

    it('are told with every answer, and with the refusal beyond them', async () => {
      const secret = await create({ limits: ['2/h'] });
      server = await start({ keys: test.keys });
      const send = () => fetch(server.url, { headers: { authorization: `Bearer ${secret}` } });
      const answers = [];
      for (let index = 0; index < 3; index += 1) {
        const { status, headers } = await send();
        answers.push([status, ...['RateLimit-Policy', 'RateLimit', 'Retry-After'].map((field) => headers.get(field))]);
      }
      assert.deepEqual(answers, [
        [200, '"hour";q=2;w=3600', '"hour";r=1;t=1800', null],
        [200, '"hour";q=2;w=3600', '"hour";r=0;t=1800', null],
        [429, '"hour";q=2;w=3600', '"hour";r=0;t=1800', '1800'],
      ]);
      assert.equal(server.handled(), 2);
    });

    it('are told with a refusal for another reason', async () => {
      const secret = await create({ limits: ['2/h'] });
      server = await start({ keys: test.keys, permission: 'DOCKER:READ_ANY' });
      const { status, headers } = await fetch(server.url, { headers: { authorization: `Bearer ${secret}` } });
      assert.deepEqual([status, headers.get('RateLimit')], [403, '"hour";r=1;t=1800']);
    });

    it('are not told of keys that have none', async () => {
      const secret = await create({});
      server = await start({ keys: test.keys });
      const { status, headers } = await fetch(server.url, { headers: { authorization: `Bearer ${secret}` } });
      assert.deepEqual([status, headers.get('RateLimit'), headers.get('RateLimit-Policy')], [200, null, null]);
    });
  });
