import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { CreatedKey } from '../../../src/keys/service/management.ts';
import { OUTCOMES } from '../../../src/keys/key/use.ts';
import { Usage } from '../../../src/features/usage/usage.ts';
import { connectTo, readToEnd } from '../../support/client.ts';
import { GUARDED_SERVERS, type StartGuarded } from '../../support/guarded-servers.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { query, startServer } from '../../support/server.ts';
import { describeOutcomes, type Door, outcomesOf, PERMISSION } from './support/outcomes.ts';

const middleware =
  (start: StartGuarded): (() => Promise<Door>) =>
  async () => {
    const test = await openTestKeys();
    const server = await start({ keys: test.keys, permission: PERMISSION });
    return {
      test,
      send: async (secret) =>
        (await fetch(server.url, { method: 'POST', headers: { authorization: `Bearer ${secret}` }, body: 'x' })).status,
      stop: async () => {
        await server.stop();
        await test.store.close();
      },
    };
  };

for (const [name, start] of Object.entries(GUARDED_SERVERS))
  describeOutcomes(`bearerAuth for ${name}`, middleware(start));

describe('how requests end, counted by the GraphQL endpoint', () => {
  let test: TestKeys;
  let server: Awaited<ReturnType<typeof startServer>>;
  before(async () => {
    test = await openTestKeys();
    server = await startServer(test.keys);
  });
  after(async () => {
    await server.stop();
    await test.store.close();
  });
  let count = 0;
  const create = (fields: object = {}) => {
    count += 1;
    return test.keys.create({ name: `Key ${count}`, roles: ['GUEST'], ...fields }, OPERATOR);
  };

  it('is accepted, whether the operation is known or not', async () => {
    const created = await create();
    for (let time = 0; time < 3; time += 1) await query(server.url, created.key, '{ online }');
    await query(server.url, created.key, '{ nonsense }');
    assert.deepEqual(await outcomesOf(test, created), [4, 0, 0, 0]);
    assert.equal((await test.keys.useOf([created.apiKey.id])).get(created.apiKey.id)!.uses, 4);
  });

  it('is forbidden once for a request, however many of its fields are, and it is a use all the same', async () => {
    const created = await create();
    for (let time = 0; time < 3; time += 1)
      await query(server.url, created.key, '{ online info { name } apiKeys { edges { cursor } } }');
    assert.deepEqual(await outcomesOf(test, created), [0, 3, 0, 0]);
    assert.equal((await test.keys.useOf([created.apiKey.id])).get(created.apiKey.id)!.uses, 3);
  });

  it('is limited and refused', async () => {
    const created = await create({ limits: ['1/h'] });
    for (let time = 0; time < 3; time += 1) await query(server.url, created.key, '{ online }');
    await test.keys.setEnabled(created.apiKey.id, false, OPERATOR);
    await query(server.url, created.key, '{ online }');
    assert.deepEqual(await outcomesOf(test, created), [1, 0, 2, 1]);
  });

  it('is no use of a key that is introspected', async () => {
    const [gateway, asked] = [await create({ permissions: ['API_KEY:READ_ANY'] }), await create()];
    await fetch(`${server.url}/introspect`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}` },
      body: new URLSearchParams({ token: asked.key }),
    });
    assert.deepEqual([await outcomesOf(test, gateway), await outcomesOf(test, asked)], [[1, 0, 0, 0], []]);
  });

  it('is counted once for a request whose key was taken away while its body arrived, in the hour of its head', async () => {
    const takeAway: [what: string, change: (created: CreatedKey) => Promise<unknown>, expected: number[]][] = [
      ['disabled', ({ apiKey: key }) => test.keys.setEnabled(key.id, false, OPERATOR), [0, 0, 0, 1]],
      [
        'bound to a network',
        ({ apiKey: key }) => test.keys.update(key.id, { allowFrom: ['10.0.0.0/8'] }, OPERATOR),
        [0, 1, 0, 0],
      ],
      [
        'narrowed',
        ({ apiKey: key }) => test.keys.update(key.id, { roles: [], permissions: ['ME:READ_OWN'] }, OPERATOR),
        [0, 1, 0, 0],
      ],
      ['as before', async () => {}, [1, 0, 0, 0]],
    ];
    for (const [what, change, expected] of takeAway) {
      const created = await create();
      const body = JSON.stringify({ query: '{ online }' });
      const socket = await connectTo(server.url);
      socket.write(
        [
          'POST /graphql HTTP/1.1',
          'Host: localhost',
          `Authorization: Bearer ${created.key}`,
          'Content-Type: application/json',
          `Content-Length: ${body.length}`,
          'Connection: close',
          'Expect: 100-continue',
          '\r\n',
        ].join('\r\n'),
      );
      await new Promise((resolve) => socket.once('data', resolve));
      // Requests that were already written as accepted are corrected in the store.
      assert.deepEqual(await outcomesOf(test, created), [1, 0, 0, 0]);
      const began = test.time.now;
      test.time.now += 3_600_000;
      await change(created);
      const answer = readToEnd(socket);
      socket.write(body);
      await answer;
      await test.keys.finishActivity();
      const { periods } = await test.keys.feature(Usage).byPeriod(created.apiKey.id);
      assert.deepEqual(
        periods.map(({ start, ...counts }) => [start, ...OUTCOMES.map((outcome) => counts[outcome])]),
        [[began, ...expected]],
        what,
      );
    }
  });
});
