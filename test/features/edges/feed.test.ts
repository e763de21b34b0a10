import assert from 'node:assert/strict';
import { edgesOf, Origin } from '../../../src/features/edges/index.ts';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { get as getRaw, type IncomingMessage } from 'node:http';
import { get as getSecurely } from 'node:https';
import { zstdDecompressSync } from 'node:zlib';
import { defaultConfig } from '../../../src/config/default-config.ts';
import { listen, type RunningServer } from '../../../src/http/listen.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { USE } from '../../../src/keys/key/use.ts';
import { createApp } from '../../../src/service/create-app.ts';
import { FEED_COLUMNS } from '../../../src/store/tables.ts';
import { type Pair, pairOf, writePair } from '../../support/certificates.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { changeDirectly } from '../../support/direct.ts';
import { insertKeys, numberedKeys } from '../../support/insert-keys.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { until } from '../../support/until.ts';

describeOnEach('the feed', () => {
  let test: TestKeys;
  let server: RunningServer;
  let token: string;

  beforeEach(async () => {
    test = await openTestKeys();
    server = await listen({ app: await createApp({ keys: test.keys }), host: '127.0.0.1', port: 0 });
    token = (await create('Edge', { permissions: ['EDGE:READ_ANY'] })).key;
  });
  afterEach(async () => {
    await server.stop(0);
    await test.keys.endFeatures();
    await test.store.close();
  });

  const create = (name: string, grants: object = { roles: ['VIEWER'] }) =>
    test.keys.create({ name, ...grants }, OPERATOR);
  const get = (path: string, init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> } = {}) =>
    fetch(server.url + path, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
  const linesOf = async (response: Response) => {
    assert.equal(response.status, 200, await response.clone().text());
    const lines = (await response.text()).trimEnd().split('\n');
    return lines.map((line) => ({ sign: line[0]!, values: JSON.parse(line.slice(1)) as unknown[] }));
  };
  /** The ids of lines with a sign. */
  const ids = (lines: Awaited<ReturnType<typeof linesOf>>, sign: '+' | '-') =>
    lines.filter((line) => line.sign === sign).map(({ values }) => values[0]);
  const load = async () => {
    const lines = await linesOf(await get('/feed/snapshot'));
    return { lines, cursor: lines.at(-1)!.values[0] as string };
  };
  const edge = (lease = 300, id: string = randomUUID()) => ({
    id,
    ask: (after: string, more: Record<string, string> = {}) =>
      get(`/feed?${String(new URLSearchParams({ after, edge: id, name: 'test', lease: String(lease), ...more }))}`),
    /** Polls until there is something new, and returns it. */
    async next(after: string) {
      for (;;) {
        const lines = await linesOf(await this.ask(after));
        const [cursor] = lines.at(-1)!.values as [string];
        if (lines.length > 1 || cursor !== after) return { lines, cursor };
      }
    },
  });

  /** Takes all changes until the server stops. */
  async function followOn(follower: ReturnType<typeof edge>, cursor: string): Promise<void> {
    for (let next = cursor; ;) {
      const response = await follower.ask(next).catch(() => undefined);
      if (response?.status !== 200) return;
      next = (await linesOf(response)).at(-1)!.values[0] as string;
    }
  }

  it('sends changes to a resting edge, and answers it when the server stops', async () => {
    const resting = edge();
    const first = (await load()).cursor;
    const told = resting.ask(first, { rest: '60000' });
    await until(() =>
      edgesOf(test.keys)
        .list()
        .some(({ restMs }) => restMs > 0),
    );
    const { apiKey: created } = await create('New');
    const lines = await linesOf(await told);
    assert.deepEqual(ids(lines, '+'), [created.id]);
    const [cursor, leaseMs] = lines.at(-1)!.values as [string, number];
    // Otherwise the lease would start before the rest is sent.
    assert.equal(leaseMs, 0);
    const other = await listen({ app: await createApp({ keys: test.keys }), host: '127.0.0.1', port: 0 });
    await other.stop();
    const asked = resting.ask(cursor, { rest: '999999' });
    await until(() =>
      edgesOf(test.keys)
        .list()
        .some(({ restMs }) => restMs > 0),
    );
    await server.stop(60_000);
    assert.equal((await linesOf(await asked)).at(-1)!.values[0], cursor);
  });

  it('allows no rests if it cannot learn that the server stops', async () => {
    const { cursor } = await load();
    const app = await createApp({ keys: test.keys });
    const asked = new URLSearchParams({ after: cursor, edge: randomUUID(), name: 'test', lease: '300', rest: '60000' });
    const answer = await app.request(`/feed?${String(asked)}`, { headers: { authorization: `Bearer ${token}` } });
    const [, leaseMs] = (await linesOf(answer)).at(-1)!.values as [string, number];
    assert.ok(leaseMs > 0);
    assert.equal(edgesOf(test.keys).list()[0]!.restMs, 0);
  });

  it('requires EDGE:READ_ANY, which VIEWER lacks', async () => {
    const { key: viewer } = await create('Viewer');
    for (const path of ['/feed', '/feed/snapshot', '/feed/activity', '/feed/leases']) {
      assert.equal((await fetch(server.url + path)).status, 401);
      assert.equal((await get(path, { headers: { authorization: `Bearer ${viewer}` } })).status, 403);
    }
  });

  it('begins with all keys, as the rows of the store, and where to go on', async () => {
    const { apiKey } = await create('First');
    const { lines, cursor } = await load();
    const row = lines.find(({ values }) => values[0] === apiKey.id)!.values;
    const at = (column: string) => row[FEED_COLUMNS.indexOf(column as never)];
    assert.equal(row.length, FEED_COLUMNS.length);
    assert.deepEqual([at('name'), at('roles'), at('created_at')], ['First', '["VIEWER"]', apiKey.createdAt]);
    assert.deepEqual(ids(await linesOf(await edge().ask(cursor)), '+'), []);
  });

  it('has the keys created, changed and deleted after a position, in one answer or several', async () => {
    const { apiKey: gone } = await create('Gone');
    const { cursor } = await load();
    const { apiKey: made } = await create('Made');
    await test.keys.delete([gone.id], OPERATOR);
    const { lines, cursor: next } = await edge().next(cursor);
    assert.deepEqual([ids(lines, '+'), ids(lines, '-')], [[made.id], [gone.id]]);
    await test.keys.setEnabled(made.id, false, OPERATOR);
    assert.deepEqual(ids((await edge().next(next)).lines, '+'), [made.id]);
  });

  it('has changes made by hand in the database', async () => {
    const { apiKey } = await create('CI');
    const { cursor } = await load();
    const follower = edge(60_000);
    await follower.ask(cursor);
    // This poll confirms that it has taken the change.
    const asked = follower.next(cursor);
    await changeDirectly(test.database, `update api_keys set disabled_at = 1 where id = '${apiKey.id}'`);
    const { lines, cursor: next } = await asked;
    assert.deepEqual(ids(lines, '+'), [apiKey.id]);
    assert.equal(lines[0]!.values[FEED_COLUMNS.indexOf('disabled_at')], 1);
    await create('Next');
    assert.equal(ids((await follower.next(next)).lines, '+').length, 1);
  });

  it('answers as soon as something changes', async () => {
    const { cursor } = await load();
    const follower = edge(60_000);
    const [, lease] = (await linesOf(await follower.ask(cursor))).at(-1)!.values as [string, number];
    assert.ok(lease > 0);
    // Without a change, the answer comes after 15 seconds.
    const asked = follower.ask(cursor);
    const { apiKey } = await create('Made');
    assert.deepEqual(ids(await linesOf(await asked), '+'), [apiKey.id]);
  });

  it('does not know a position of another store, or an invalid one', async () => {
    const { cursor } = await load();
    const [number] = cursor.split('.');
    for (const other of [`${number}.0000`, '999999.0000', '0.x', 'x'])
      assert.equal((await edge().ask(other)).status, 410);
  });

  it('refuses missing, repeated and malformed parameters', async () => {
    const { cursor } = await load();
    const good = { after: cursor, edge: randomUUID(), name: 'a', lease: '1000' };
    const bad = [
      { edge: 'x' },
      { lease: '99' },
      { lease: '60001' },
      { lease: '-1' },
      { name: '' },
      { name: 'a\u0000' },
      { after: '' },
    ];
    for (const change of bad)
      assert.equal((await get(`/feed?${String(new URLSearchParams({ ...good, ...change }))}`)).status, 400);
    assert.equal((await get(`/feed?${String(new URLSearchParams(good))}&after=1`)).status, 400);
    assert.equal((await get(`/feed?${String(new URLSearchParams(good))}`, { method: 'POST' })).status, 405);
  });

  it('lets a change return once each edge has asked from behind it', async () => {
    const { apiKey } = await create('CI');
    const { cursor } = await load();
    const [one, other] = [edge(10_000), edge(10_000)];
    for (const follower of [one, other]) await follower.ask(cursor);
    const events: string[] = [];
    const changed = test.keys.delete([apiKey.id], OPERATOR).then(() => events.push('returned'));
    const { cursor: next } = await one.next(cursor);
    await other.next(cursor);
    events.push('both told');
    void followOn(one, next);
    // Polling again for a lost answer confirms nothing.
    const { cursor: again } = await other.next(cursor);
    events.push('told again');
    void followOn(other, again);
    await changed;
    assert.deepEqual(events, ['both told', 'told again', 'returned']);
  });

  it('waits for an edge that is gone until its lease is over, and no longer', async () => {
    const { apiKey } = await create('CI');
    const { cursor } = await load();
    const askedAt = performance.now();
    const [, lease] = (await linesOf(await edge(500).ask(cursor))).at(-1)!.values as [string, number];
    await test.keys.setEnabled(apiKey.id, false, OPERATOR);
    assert.ok(performance.now() >= askedAt + lease);
    const { lines } = await edge().next(cursor);
    assert.deepEqual(ids(lines, '+'), [apiKey.id]);
  });

  it('has all that is changed while all keys are loaded', async () => {
    await insertKeys(test.keys, numberedKeys(1100));
    const response = await get('/feed/snapshot');
    const { apiKey: made } = await create('Made');
    const lines = await linesOf(response);
    const known = new Set<unknown>();
    for (const { sign, values } of lines) if (sign === '+') known.add(values[0]);
    const { cursor } = { cursor: lines.at(-1)!.values[0] as string };
    if (!known.has(made.id)) for (const id of ids((await edge().next(cursor)).lines, '+')) known.add(id);
    assert.ok(known.has(made.id));
    assert.equal(known.size, 1102);
  });

  it('requires a certificate only from edges, if the configuration names a CA for them', async () => {
    const files = writePair(pairOf('first'));
    const tls = { ...files, clientCa: files.cert };
    const config = { ...defaultConfig(), tls };
    const app = await createApp({ keys: test.keys, config });
    const secure = await listen({ app, host: '127.0.0.1', port: 0, tls });
    try {
      const statusOf = async (path: string, pair?: Pair) => {
        const headers = { authorization: `Bearer ${token}` };
        const options = { headers, ca: pairOf('first').cert, servername: 'localhost', agent: false, ...pair };
        const [response] = (await once(getSecurely(secure.url + path, options), 'response')) as [IncomingMessage];
        return response.resume().statusCode;
      };
      assert.equal(await statusOf('/feed/snapshot', pairOf('first')), 200);
      assert.equal(await statusOf('/feed/snapshot', pairOf('other')), 403);
      assert.equal(await statusOf('/feed/snapshot'), 403);
      assert.equal(await statusOf('/healthz'), 200);
    } finally {
      await secure.stop(0);
    }
  });

  it('is compressed for clients that support it', async () => {
    const headers = { authorization: `Bearer ${token}`, 'accept-encoding': 'gzip, zstd' };
    const [response] = (await once(getRaw(`${server.url}/feed/snapshot`, { headers }), 'response')) as [
      IncomingMessage,
    ];
    assert.equal(response.headers['content-encoding'], 'zstd');
    const body = Buffer.concat(await response.toArray());
    assert.match(zstdDecompressSync(body).toString(), /^\+\[.*\n=\[.*\]\n$/s);
  });

  it('is compressed also if it sends many changes at once', async () => {
    const { cursor } = await load();
    for (let index = 0; index < 20; index += 1)
      await create(`Key ${index}`, { description: 'x'.repeat(1000), roles: ['VIEWER'] });
    const query = new URLSearchParams({ after: cursor, edge: randomUUID(), name: 'test', lease: '300' });
    const headers = { authorization: `Bearer ${token}`, 'accept-encoding': 'zstd' };
    const asked = getRaw(`${server.url}/feed?${String(query)}`, { headers });
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    assert.equal(response.headers['content-encoding'], 'zstd');
    assert.match(zstdDecompressSync(Buffer.concat(await response.toArray())).toString(), /^(?:\+\[.*\n){20}=\[.*\]\n$/);
  });

  it('is loaded by four at a time', async () => {
    for (let index = 0; index < 6; index += 1) await load();
    const ends = Array.from({ length: 4 }, () => edgesOf(test.keys).beginLoading()!);
    const refused = await get('/feed/snapshot');
    assert.equal(refused.status, 503);
    assert.equal(refused.headers.get('retry-after'), '1');
    for (const end of ends) end();
    await load();
  });

  it('takes what edges report, once', async () => {
    const { apiKey } = await create('CI');
    const hours = [{ start: 3_600_000 * 400_000, accepted: 2, forbidden: 0, limited: 0, refused: 0 }];
    const usage = [
      {
        id: apiKey.id,
        uses: 2,
        lastUsedAt: Date.now(),
        previousLastUsedAt: null,
        permissions: ['DISK:READ_ANY' as const],
        hours,
      },
    ];
    const report = { id: randomUUID(), usage, activated: [], refusals: [] };
    const post = (body: unknown) =>
      get('/feed/activity', {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      });
    assert.equal((await post(report)).status, 204);
    assert.equal((await post(report)).status, 204);
    // The request can be repeated to another process, so that both receive it at the same time.
    const other = await openTestKeys({ database: test.database });
    const action = { at: Date.now(), actor: { kind: 'REQUEST', id: null, name: null }, action: 'REFUSE' } as const;
    const refusals = [{ ...action, apiKey: null, before: null, after: {}, address: '203.0.113.7' }];
    const again = { ...report, refusals };
    const by = (await test.store.repository.findByName('Edge'))!;
    await Promise.all([
      other.keys.feature(Origin).takeReport(again, by),
      post(again),
      other.keys.feature(Origin).takeReport(again, by),
    ]);
    await other.keys.finishActivity();
    await test.keys.finishActivity();
    await other.store.close();
    const totals = await test.store.repository.port(USE).totals([apiKey.id]);
    assert.equal(totals.get(apiKey.id)!.uses, 2);
    const counted = await test.store.repository.auditLog.count({ action: 'REFUSE' }, 86_400_000);
    assert.deepEqual(
      counted.map(({ entries }) => entries),
      [1],
    );
    for (const wrong of [
      [],
      { ...report, usage: [{ ...usage[0], uses: 'x' }] },
      { ...report, more: 1 },
      { ...report, id: '' },
    ])
      assert.equal((await post(wrong)).status, 400);
  });

  it('forgets the lease of an edge that says that it ends, and waits for it no more', async () => {
    const { apiKey } = await create('CI');
    const { cursor } = await load();
    const follower = edge(60_000);
    await follower.ask(cursor);
    const { count } = edgesOf(test.keys).waited;
    const left = await get(`/feed?${String(new URLSearchParams({ edge: follower.id }))}`, { method: 'DELETE' });
    assert.equal(left.status, 200);
    await test.keys.setEnabled(apiKey.id, false, OPERATOR);
    assert.equal(edgesOf(test.keys).waited.count, count);
    assert.equal((await get('/feed?edge=x', { method: 'DELETE' })).status, 400);
  });

  it('leases no more than the limits of a key, whatever an edge sends, and takes no more back', async () => {
    const { apiKey } = await create('CI', { roles: ['GUEST'], limits: ['10/m', '100/budget'] });
    const request = { holder: 'edge-1', used: 0, waiting: 0, ahead: 0, lifeUs: 1_000_000 };
    let turn = 0;
    const lease = async (fields: object, as = token) => {
      turn += 1;
      const response = await get('/feed/leases', {
        method: 'POST',
        body: JSON.stringify([{ ...request, turn, ...fields }]),
        headers: { 'content-type': 'application/json', authorization: `Bearer ${as}` },
      });
      assert.equal(response.status, 200);
      return ((await response.json()) as { granted: number; ahead: number }[])[0]!;
    };
    const of = (limit: string, unusedAt = 0) => [{ keyId: apiKey.id, limit, unusedAt }];
    // Usage without a lease counts for nothing, now or in a thousand years.
    await lease({ limits: of('100/budget', 10 ** 15), used: 10 ** 9 });
    assert.equal((await lease({ limits: of('1/budget'), waiting: 40 })).granted, 40);
    assert.equal((await lease({ limits: of('1000/budget'), waiting: 1000, holder: 'edge-2' })).granted, 60);
    // A limit that the key does not have is granted as requested.
    assert.equal((await lease({ limits: of('5/h'), waiting: 7 })).granted, 7);
    const { key: other } = await create('Other edge', { permissions: ['EDGE:READ_ANY'] });
    const { ahead } = await lease({ limits: of('1000/m'), ahead: 1000, lifeUs: 10 ** 12 });
    assert.equal(ahead, 1);
    // Another key cannot act for a holder, or use its share.
    await lease({ limits: of('10/m', 2 ** 52), used: 1 }, other);
    assert.equal((await lease({ limits: of('10/m'), waiting: 100 }, other)).granted, 9);
    await lease({ limits: of('10/m', 2 ** 52), used: 10 ** 9 });
    test.time.now += 60_001;
    assert.equal((await lease({ limits: of('10/m'), waiting: 100 })).granted, 10);
  });

  it('remembers a thousand limits of a key at most, whatever routes an edge names', async () => {
    const { apiKey } = await create('CI', { roles: ['GUEST'] });
    const request = { holder: 'edge-1', turn: 1, used: 0, waiting: 1, ahead: 0, lifeUs: 1_000_000 };
    const grants: unknown[] = [];
    for (let first = 0; first < 1100; first += 100) {
      const requests = Array.from({ length: 100 }, (_, index) => {
        return { ...request, limits: [{ keyId: apiKey.id, limit: '10/m', route: `${first + index}`, unusedAt: 0 }] };
      });
      const headers = { 'content-type': 'application/json' };
      const response = await get('/feed/leases', { method: 'POST', body: JSON.stringify(requests), headers });
      grants.push(...((await response.json()) as unknown[]));
    }
    assert.equal(grants.filter((grant) => grant !== null).length, 1000);
  });

  it('leases limits to edges', async () => {
    const { apiKey } = await create('CI', { roles: ['GUEST'], limits: ['10/m'] });
    const request = { holder: 'edge-1', turn: 1, used: 0, waiting: 4, ahead: 0, lifeUs: 1_000_000 };
    const lease = async (limits: unknown[]) => {
      const response = await get('/feed/leases', {
        method: 'POST',
        body: JSON.stringify([{ ...request, limits }]),
        headers: { 'content-type': 'application/json' },
      });
      return { status: response.status, body: (await response.json()) as { granted: number }[] };
    };
    const limits = [{ keyId: apiKey.id, limit: '10/m', unusedAt: 0 }];
    assert.equal((await lease(limits)).body[0]!.granted, 4);
    assert.equal((await lease(limits)).body[0]!.granted, 4);
    assert.equal((await lease(limits)).body[0]!.granted, 2);
    assert.equal((await lease([{ ...limits[0], keyId: randomUUID() }])).body[0], null);
    for (const wrong of [
      [],
      [{ ...limits[0], limit: 'x' }],
      [{ ...limits[0], weight: -1 }],
      [{ ...limits[0], keyId: 'x' }],
    ])
      assert.equal((await lease(wrong)).status, 400);
  });
});
