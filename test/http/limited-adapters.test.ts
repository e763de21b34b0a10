import assert from 'node:assert/strict';
import { Hono } from 'hono';
import { bearerAuth } from '../../src/http/bearer-auth.ts';
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
      return (await test.keys.create({ name: `Key ${count}`, roles: ['GUEST'], ...fields }, OPERATOR)).key;
    };

    it('are in every answer, and in the refusal beyond them', async () => {
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

    it('are in a refusal for another reason', async () => {
      const secret = await create({ limits: ['2/h'] });
      server = await start({ keys: test.keys, permission: 'DOCKER:READ_ANY' });
      const { status, headers } = await fetch(server.url, { headers: { authorization: `Bearer ${secret}` } });
      assert.deepEqual([status, headers.get('RateLimit')], [403, '"hour";r=1;t=1800']);
    });

    it('are missing for keys without limits', async () => {
      const secret = await create({});
      server = await start({ keys: test.keys });
      const { status, headers } = await fetch(server.url, { headers: { authorization: `Bearer ${secret}` } });
      assert.deepEqual([status, headers.get('RateLimit'), headers.get('RateLimit-Policy')], [200, null, null]);
    });
  });

describe('limits, held by bearerAuth in an app of Hono', () => {
  it('are in each answer, wherever that was made, and whatever it says of limits itself', async () => {
    const { keys, store } = await openTestKeys();
    const { key: secret } = await keys.create({ name: 'Limited', roles: ['GUEST'], limits: ['100/h'] }, OPERATOR);
    const app = new Hono()
      .use(bearerAuth({ keys }))
      .get('/own', (c) => c.text('Its own.', 200, { RateLimit: 'mine', 'X-Kept': 'yes' }))
      .get('/elsewhere', () => new Response('A copy.', { headers: { RateLimit: 'theirs', 'X-Kept': 'yes' } }))
      .get('/throws', () => {
        throw new Error('It failed.');
      })
      .onError((_, c) => c.text('An error.', 500, { 'X-Kept': 'yes' }))
      .notFound((c) => c.text('Nothing.', 404, { 'X-Kept': 'yes' }));
    const told = [];
    for (const path of ['/own', '/elsewhere', '/throws', '/nothing']) {
      const { status, headers } = await app.request(path, { headers: { authorization: `Bearer ${secret}` } });
      told.push([path, status, ...['RateLimit', 'RateLimit-Policy', 'X-Kept'].map((name) => headers.get(name))]);
    }
    const policy = '"hour";q=100;w=3600';
    assert.deepEqual(told, [
      ['/own', 200, '"hour";r=99;t=36', policy, 'yes'],
      ['/elsewhere', 200, '"hour";r=98;t=36', policy, 'yes'],
      ['/throws', 500, '"hour";r=97;t=36', policy, 'yes'],
      ['/nothing', 404, '"hour";r=96;t=36', policy, 'yes'],
    ]);
    await store.close();
  });
});
