import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { CreatedKey } from '../../../src/keys/service/management.ts';
import { OUTCOMES } from '../../../src/keys/key/use.ts';
import { Usage } from '../../../src/features/usage/usage.ts';
import { connectTo, readToEnd } from '../../support/client.ts';
import { ASKING, keyLine, routeTo, startAskedServer, withHeaders } from '../../support/forward-auth.ts';
import { PERMISSION, startGuarded } from '../../support/guard.ts';
import { GUARDED_SERVERS, type StartGuarded } from '../../support/guarded-servers.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { query, startServer } from '../../support/server.ts';

/** How the requests of a key ended: accepted, forbidden, limited, refused. */
async function outcomesOf({ keys }: Pick<TestKeys, 'keys'>, { apiKey: key }: CreatedKey): Promise<number[]> {
  await keys.finishActivity();
  const [hour] = (await keys.feature(Usage).byPeriod(key.id)).periods;
  return hour ? OUTCOMES.map((outcome) => hour[outcome]) : [];
}

/** A door to keys: sends one request with a secret, which needs `DASHBOARD:READ_ANY`. */
interface Door {
  test: TestKeys;
  send(secret: string): Promise<number>;
  stop(): Promise<void>;
}

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

const DOORS: Readonly<Record<string, () => Promise<Door>>> = {
  ...Object.fromEntries(
    Object.entries(GUARDED_SERVERS).map(([name, start]) => [`bearerAuth for ${name}`, middleware(start)]),
  ),
  'forward-auth': async () => {
    const test = await startAskedServer({
      config: { routes: [routeTo('/**', { kind: 'all', permissions: [PERMISSION] })] },
    });
    const send = async (secret: string) =>
      (await test.send(withHeaders(ASKING.caddy({}), keyLine(secret), 'Connection: close'))).status;
    return { test, send, stop: () => test.stop() };
  },
  guard: async () => {
    const test = await startGuarded((_, response) => response.end('x'));
    const send = async (secret: string) =>
      (await fetch(test.url, { headers: { authorization: `Bearer ${secret}` } })).status;
    return { test, send, stop: () => test.stop() };
  },
};

for (const [name, open] of Object.entries(DOORS))
  describe(`how requests end, counted by ${name}`, () => {
    let door: Door;
    before(async () => {
      door = await open();
    });
    after(() => door.stop());
    let count = 0;
    const create = (fields: object = {}) => {
      count += 1;
      return door.test.keys.create({ name: `Key ${count}`, permissions: [PERMISSION], ...fields }, OPERATOR);
    };
    const sendTo = async (created: CreatedKey, times = 1) => {
      for (let time = 0; time < times; time += 1) await door.send(created.key);
      return outcomesOf(door.test, created);
    };

    it('is accepted', async () => assert.deepEqual(await sendTo(await create(), 3), [3, 0, 0, 0]));

    it('is forbidden without a permission, and from elsewhere', async () => {
      assert.deepEqual(await sendTo(await create({ permissions: ['ME:READ_OWN'] }), 2), [0, 2, 0, 0]);
      assert.deepEqual(await sendTo(await create({ allowFrom: ['10.0.0.0/8'] })), [0, 1, 0, 0]);
    });

    it('is limited beyond a limit', async () =>
      assert.deepEqual(await sendTo(await create({ limits: ['2/h'] }), 5), [2, 0, 3, 0]));

    it('is refused where the key is disabled', async () => {
      const created = await create();
      assert.deepEqual(await sendTo(created), [1, 0, 0, 0]);
      await door.test.keys.setEnabled(created.apiKey.id, false, OPERATOR);
      assert.deepEqual(await sendTo(created, 2), [1, 0, 0, 2]);
    });
  });

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
      // Counted requests are written already, and corrected in the store.
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
