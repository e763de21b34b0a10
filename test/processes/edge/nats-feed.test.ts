import assert from 'node:assert/strict';
import { edgesOf } from '../../../src/features/edges/index.ts';
import type { NatsConnection } from '@nats-io/transport-node';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FeedByNats } from '../../../src/features/nats/settings.ts';
import { type EdgeStore, openEdgeStore } from '../../../src/features/edge/index.ts';
import { requestCheck } from '../../../src/http/request-check.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { connectTo, type NatsAsk } from '../../../src/features/nats/connection.ts';
import { NatsFeed } from '../../../src/features/nats/nats-feed.ts';
import { NatsPublisher } from '../../../src/features/nats/publisher.ts';
import { openKeysOver, type OpenKeys } from '../../../src/service/open-keys.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { rotateToken } from '../../support/edge-token.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { collectingLog } from '../../support/log.ts';
import { natsAccounts, type NatsServer, startNats, stopNats } from '../../support/nats.ts';
import { freePort } from '../../support/port.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

/** A lease that a test lets expire, and one longer than any pause of the machine. */
const [LEASE_MS, LONG_LEASE_MS] = [1000, 60_000];

describeOnEach('a feed by NATS', (dialect) => {
  let test: TestKeys;
  let nats: NatsServer;
  let publisher: NatsPublisher;
  let token: string;
  const edges: { store: EdgeStore; keys: OpenKeys }[] = [];
  const { log, lines } = collectingLog();

  const settings = () => ({ servers: [nats.url], credentials: undefined, name: 'test' });
  const publish = ({ keys }: TestKeys = test, more: Partial<FeedByNats> = {}, clearMs?: number) =>
    new NatsPublisher({
      settings: { ...settings(), ...more },
      keys: () => Object.assign(keys, { check: requestCheck(keys) }),
      log,
      clearMs,
    });
  const follow = async (
    { token: shown = token, ...more }: Partial<FeedByNats> & { token?: string | { file: string } } = {},
    { leaseMs = LONG_LEASE_MS, ...how }: { leaseMs?: number; idleMs?: number; patienceMs?: number } = {},
  ) => {
    const feed = new NatsFeed({ settings: { ...settings(), ...more }, token: shown, leaseMs, log });
    const store = await openEdgeStore(feed, { ...how, log });
    const edge = { store, keys: openKeysOver(store, createCatalog({})) };
    edges.push(edge);
    return edge;
  };
  /** The edge's answer for a secret. */
  const check = async ({ keys }: { keys: OpenKeys }, secret: string) => {
    const checked = await keys.check({ secret });
    return checked.ok ? 'ok' : `${checked.status} ${checked.code}`;
  };
  const create = async (name: string, more: object = {}) =>
    test.keys.create({ name, roles: ['VIEWER'], ...more }, OPERATOR);

  beforeEach(async () => {
    lines.length = 0;
    nats = await startNats();
    test = await openTestKeys();
    test.time.now = Date.now();
    ({ key: token } = await create('Edge', { roles: [], permissions: ['EDGE:READ_ANY'] }));
    publisher = publish();
  });

  afterEach(async () => {
    for (const { keys } of edges.splice(0)) await keys.close();
    await publisher.stop();
    await test.keys.endFeatures();
    await test.store.close();
    await stopNats();
  });

  it('has the keys of its origin on each edge, and a change returns once all of them know it', async () => {
    const { apiKey: before, key: old } = await create('Before');
    const [one, other] = [await follow(), await follow()];
    assert.equal(one.store.state().keys, 2);
    const { apiKey, key } = await create('New');
    assert.deepEqual([await check(one, key), await check(other, key)], ['ok', 'ok']);
    await test.keys.setEnabled(apiKey.id, false, OPERATOR);
    assert.deepEqual([await check(one, key), await check(other, key)], ['401 UNAUTHENTICATED', '401 UNAUTHENTICATED']);
    await test.keys.delete([before.id], OPERATOR);
    assert.deepEqual([await check(one, old), await check(other, old)], ['401 UNAUTHENTICATED', '401 UNAUTHENTICATED']);
    assert.equal(other.store.state().keys, 2);
  });

  it('goes on by another process of the origin, from where the one before has ended', async () => {
    const { apiKey, key } = await create('Key');
    const edge = await follow();
    const other = await openTestKeys({ database: test.database });
    other.time.now = Date.now();
    const standby = publish(other);
    await publisher.stop();
    const { apiKey: made, key: secret } = await create('Made');
    await until(async () => (await check(edge, secret)) === 'ok');
    await test.keys.delete([apiKey.id, made.id], OPERATOR);
    assert.deepEqual(
      [await check(edge, key), await check(edge, secret)],
      ['401 UNAUTHENTICATED', '401 UNAUTHENTICATED'],
    );
    assert.ok(!lines.some(({ message }) => message.includes('are loaded again')));
    // A closing edge notifies its origin and waits for the answer.
    for (const { keys } of edges.splice(0)) await keys.close();
    await standby.stop();
    await other.keys.endFeatures();
    await other.store.close();
  });

  it('reports what keys were used for, and holds requests to limits together with the origin', async () => {
    const { key, apiKey } = await create('Limited', { limits: ['3/h'] });
    const edge = await follow();
    const said = [await check(edge, key), await check(edge, key), await check(edge, key), await check(edge, key)];
    assert.deepEqual(said, ['ok', 'ok', 'ok', '429 RATE_LIMITED']);
    await edge.keys.finishActivity();
    assert.equal((await test.keys.useOf([apiKey.id])).get(apiKey.id)?.uses, 3);
  });

  // The rest is between NATS and the edges, and does not depend on the store.
  if (dialect === 'postgres') return;

  it('gives no lease while NATS is away, and loses no changes made meanwhile', async () => {
    const { apiKey, key } = await create('Key');
    const edge = await follow({}, { leaseMs: LEASE_MS });
    await until(async () => (await check(edge, key)) === 'ok');
    await nats.kill();
    await test.keys.setEnabled(apiKey.id, false, OPERATOR);
    // It returns only after the edge has stopped answering.
    assert.equal(await check(edge, key), '503 SERVICE_UNAVAILABLE');
    await nats.start();
    await until(async () => (await check(edge, key)) === '401 UNAUTHENTICATED');
    await test.keys.setEnabled(apiKey.id, true, OPERATOR);
    assert.ok(!lines.some(({ message }) => message.includes('are loaded again')));
    await until(async () => (await check(edge, key)) === 'ok');
  });

  it('gives an edge without requests a lease before it answers, and changes do not wait for it', async () => {
    const { apiKey, key } = await create('Key');
    const edge = await follow({}, { leaseMs: 3 * LEASE_MS, idleMs: 0 });
    await until(() =>
      edgesOf(test.keys)
        .list()
        .some(({ restMs, leaseMs }) => restMs > 0 && leaseMs === 0),
    );
    assert.equal(edge.store.state().leaseSeconds, 0);
    const { count } = edgesOf(test.keys).waited;
    await test.keys.setEnabled(apiKey.id, false, OPERATOR);
    assert.equal(edgesOf(test.keys).waited.count, count);
    assert.equal(await check(edge, key), '401 UNAUTHENTICATED');
    assert.ok(edge.store.state().leaseSeconds > 0);
    await test.keys.setEnabled(apiKey.id, true, OPERATOR);
    assert.equal(await check(edge, key), 'ok');
    await until(() => edge.store.state().leaseSeconds === 0);
    await nats.kill();
    assert.equal(await check(edge, key), '503 SERVICE_UNAVAILABLE');
    // A closing edge reports usage and waits for NATS.
    await nats.start();
  });

  it('refuses on an edge that starts while NATS is away, until that has loaded all keys', async () => {
    const { key } = await create('Key');
    await nats.kill();
    const edge = await follow({}, { patienceMs: 0 });
    assert.equal(await check(edge, key), '503 SERVICE_UNAVAILABLE');
    await assert.rejects(edge.keys.store.check(), { code: 'EDGE_STALE' });
    await nats.start();
    await until(async () => (await check(edge, key)) === 'ok');
    await edge.keys.store.check();
  });

  it('fills the bucket anew where NATS has lost it', async () => {
    const { apiKey, key } = await create('Key');
    const { key: kept } = await create('Kept');
    const edge = await follow({}, { leaseMs: LEASE_MS });
    await nats.kill();
    nats.forget();
    await test.keys.delete([apiKey.id], OPERATOR);
    await nats.start();
    await until(async () => (await check(edge, key)) === '401 UNAUTHENTICATED');
    await until(async () => (await check(edge, kept)) === 'ok');
    assert.ok(lines.some(({ message }) => message.includes('are loaded again')));
  });

  it('closes edges while NATS does not go on, and lets a change return', async () => {
    const { apiKey, key } = await create('Key');
    const edge = await follow({}, { leaseMs: LEASE_MS });
    process.kill(nats.pid, 'SIGSTOP');
    try {
      // Before that, NATS can still deliver messages.
      await until(() => /\) T /.test(readFileSync(`/proc/${nats.pid}/stat`, 'latin1')));
      await test.keys.delete([apiKey.id], OPERATOR);
      assert.equal(await check(edge, key), '503 SERVICE_UNAVAILABLE');
    } finally {
      process.kill(nats.pid, 'SIGCONT');
    }
    await until(async () => (await check(edge, key)) === '401 UNAUTHENTICATED');
  });

  it('does not wait for an edge that is gone for longer than its lease', async () => {
    const { apiKey, key } = await create('Key');
    const gone = await follow({}, { leaseMs: LEASE_MS });
    const edge = await follow();
    await gone.keys.close();
    edges.shift();
    await test.keys.delete([apiKey.id], OPERATOR);
    assert.equal(await check(edge, key), '401 UNAUTHENTICATED');
  });

  /** The last logged reason for not publishing. */
  const problem = () =>
    JSON.stringify(lines.findLast(({ message }) => message.startsWith('changes are not published'))?.fields);
  const managerOf = async ({ url }: NatsServer = nats) => {
    const { nats: library, connection } = await connectTo({ ...settings(), servers: [url] });
    const { streams } = await library.jetstreamManager(connection, { checkAPI: false });
    return { library, connection, streams };
  };

  it('says that an entry is refused, closes edges, and goes on once it is taken', async () => {
    const edge = await follow({}, { leaseMs: LEASE_MS });
    await nats.kill();
    await nats.start('max_payload: 1024');
    const { key } = await create('Large', { description: 'x'.repeat(1000) });
    await until(() => problem() !== undefined);
    assert.equal(await check(edge, key), '503 SERVICE_UNAVAILABLE');
    await nats.kill();
    await nats.start();
    await until(async () => (await check(edge, key)) === 'ok');
  });

  it('lets changes return while JetStream is full, accepts nothing that was revoked, and goes on once there is room', async () => {
    await publisher.stop();
    await stopNats();
    nats = await startNats('', 'max_file_store: 2000000');
    publisher = publish();
    const { apiKey, key } = await create('Key');
    const { apiKey: other, key: disabled } = await create('Other');
    const { key: kept } = await create('Kept');
    const edge = await follow({}, { leaseMs: LEASE_MS });
    for (const secret of [key, disabled, kept]) await until(async () => (await check(edge, secret)) === 'ok');
    const { library, connection, streams } = await managerOf();
    await streams.add({ name: 'others', subjects: ['others'], storage: library.StorageType.File });
    const fill = async () => {
      for (;;) await library.jetstream(connection).publish('others', 'x'.repeat(10_000));
    };
    await assert.rejects(fill(), /insufficient resources/);
    await test.keys.delete([apiKey.id], OPERATOR);
    assert.notEqual(await check(edge, key), 'ok');
    await test.keys.setEnabled(other.id, false, OPERATOR);
    assert.notEqual(await check(edge, disabled), 'ok');
    await until(() => problem()?.includes('insufficient resources. The storage is full') === true);
    await until(async () => (await check(edge, kept)) === '503 SERVICE_UNAVAILABLE');
    await streams.delete('others');
    await until(async () => (await check(edge, kept)) === 'ok');
    for (const secret of [key, disabled])
      await until(async () => (await check(edge, secret)) === '401 UNAUTHENTICATED');
    assert.ok(!lines.some(({ message }) => message.includes('are loaded again')));
    await connection.close();
  });

  it('publishes nothing in a bucket that would drop keys', async () => {
    await follow();
    const { connection, streams } = await managerOf();
    for (const limit of [{ max_bytes: 10_000 }, { max_age: 3_600_000_000_000 }, { max_msgs: 10 }]) {
      await publisher.stop();
      await streams.update('KV_test-keys', { max_bytes: -1, max_age: 0, max_msgs: -1, ...limit });
      publisher = publish();
      await until(() => problem()?.includes(`remove ${Object.keys(limit)[0]!}`) === true);
    }
    await streams.update('KV_test-keys', { max_msgs: -1 });
    const { key } = await create('Key');
    assert.equal(await check(await follow(), key), 'ok');
    await connection.close();
  });

  /** The edges' lease requests from now on. */
  const asksOver = (connection: NatsConnection): NatsAsk[] => {
    const asks: NatsAsk[] = [];
    connection.subscribe('test.feed.ask', {
      callback: (_, message) => {
        const asked = message.json<NatsAsk>();
        if (asked.leaseMs > 0) asks.push(asked);
      },
    });
    return asks;
  };
  const startLeaf = async () => {
    const leafPort = await freePort();
    const hub = await startNats(`leafnodes { host: 127.0.0.1, port: ${leafPort} }`, 'domain: hub');
    return {
      hub,
      leaf: await startNats(`leafnodes { remotes: [{ url: "nats://127.0.0.1:${leafPort}" }] }`, false),
    };
  };

  it('does not keep for ever that keys are gone, nor accepts one at an edge that was away until that was cleared', async () => {
    const { hub, leaf } = await startLeaf();
    const origin = publish(test, { servers: [hub.url] }, 1000);
    const { apiKey, key } = await create('Key');
    const { key: kept } = await create('Kept');
    const away = await follow({ servers: [leaf.url] }, { leaseMs: LEASE_MS });
    const edge = await follow({ servers: [hub.url] });
    const { connection, streams } = await managerOf(hub);
    const asks = asksOver(connection);
    const entries = async () => {
      const { state } = await streams.info('KV_test-keys', { subjects_filter: '$KV.test-keys.*' });
      return Object.keys(state.subjects ?? {}).length;
    };
    const before = await entries();
    await until(async () => (await check(away, key)) === 'ok');
    await leaf.kill();
    await until(() => asks.length > 0);
    const old = asks.at(-1)!;
    await test.keys.delete([apiKey.id], OPERATOR);
    assert.equal(await entries(), before);
    await until(async () => (await entries()) === before - 1);
    assert.deepEqual([await check(edge, key), await check(edge, kept)], ['401 UNAUTHENTICATED', 'ok']);
    await leaf.start();
    await until(async () => {
      assert.notEqual(await check(away, key), 'ok');
      return (await check(away, kept)) === 'ok';
    });
    await until(async () => (await check(away, key)) === '401 UNAUTHENTICATED');
    assert.ok(lines.some(({ message }) => message.includes('are loaded again')));
    // Entries from later on do not prove that none was missed.
    const now = asks.at(-1)!;
    const answerTo = async (asked: NatsAsk) =>
      (await connection.request('test.feed.ask', JSON.stringify(asked))).json<{ error?: { code: string } }>();
    assert.equal((await answerTo({ ...now, known: now.after })).error, undefined);
    assert.equal((await answerTo({ ...now, known: old.after })).error?.code, 'NOT_FOUND');
    await connection.close();
    await origin.stop();
  });

  it('shows for each edge up to where it has confirmed', async () => {
    await follow();
    const { connection } = await connectTo(settings());
    const asks = asksOver(connection);
    const isNew = ({ after, known }: NatsAsk) => after !== known;
    for (let count = 0; !asks.some(isNew); count += 1) await create(`Key ${count}`);
    for (const [index, { known }] of asks.entries())
      assert.ok([asks[0]!.known, ...asks.slice(0, index).map(({ after }) => after)].includes(known));
    await connection.close();
  });

  it('goes by a leaf node', async () => {
    const { hub, leaf } = await startLeaf();
    const origin = publish(test, { servers: [hub.url] });
    const { apiKey, key } = await create('Key');
    const edge = await follow({ servers: [leaf.url] });
    assert.equal(await check(edge, key), 'ok');
    await test.keys.delete([apiKey.id], OPERATOR);
    assert.equal(await check(edge, key), '401 UNAUTHENTICATED');
    await origin.stop();
  });

  it('refuses an edge whose key is invalid or lacks EDGE:READ_ANY', async () => {
    const { key } = await create('Other');
    await assert.rejects(follow({ token: key }), { code: 'FORBIDDEN' });
    await assert.rejects(follow({ token: 'svc_nothing' }), { code: 'UNAUTHENTICATED' });
  });

  it('takes another token from its file while it runs', async () => {
    const tokenFile = join(tempFolder(), 'edge.key');
    writeFileSync(tokenFile, token, { mode: 0o600 });
    const edge = await follow({ token: { file: tokenFile } }, { leaseMs: LEASE_MS });
    await rotateToken(test, 'Edge', {
      tokenFile,
      check: (secret) => check(edge, secret),
      hasLease: () => edge.store.state().leaseSeconds > 0,
      hasLogged: (begin) => lines.some(({ message }) => message.startsWith(begin)),
    });
  });

  it('needs credentials that NATS accepts, of the origin and of edges', async () => {
    const accounts = natsAccounts();
    const guarded = await startNats(accounts.settings);
    const credentials = (text: string) => {
      const file = join(tempFolder(), 'nats.creds');
      writeFileSync(file, text, { mode: 0o600 });
      return { servers: [guarded.url], credentials: { file } };
    };
    const accepted = credentials(accounts.accepted);
    const origin = publish(test, accepted);
    const { key } = await create('Key');
    assert.equal(await check(await follow(accepted), key), 'ok');
    await assert.rejects(follow(credentials(accounts.refused)), { code: 'UNAUTHENTICATED' });
    await assert.rejects(follow({ servers: [guarded.url] }), { code: 'UNAUTHENTICATED' });
    await assert.rejects(follow({ servers: [guarded.url], credentials: { file: '/none' } }), {
      code: 'CONFIG_UNAVAILABLE',
    });
    const other = publish(test, credentials(accounts.refused));
    await until(() => lines.some(({ fields }) => JSON.stringify(fields).includes('refuses the credentials')));
    await other.stop();
    await origin.stop();
  });
});
