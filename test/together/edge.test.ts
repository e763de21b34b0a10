import assert from 'node:assert/strict';
import { edgesOf } from '../../src/features/edges/index.ts';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openEdgeStore, HttpFeed, type EdgeStore } from '../../src/features/edge/index.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { openKeysOver, type OpenKeys } from '../../src/service/open-keys.ts';
import { rotateToken } from '../support/edge-token.ts';
import { collectingLog } from '../support/log.ts';
import { type FaultyOrigin, startFaultyOrigin } from '../support/faulty-origin.ts';
import { startTestService, type TestService } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

/** A lease that a test lets expire, and one longer than any pause of the machine. */
const [LEASE_MS, LONG_LEASE_MS] = [1000, 60_000];

describe('an edge', () => {
  let test: TestService;
  let origin: FaultyOrigin;
  let token: string;
  let edge: EdgeStore;
  let keys: OpenKeys;
  const { log, lines } = collectingLog();

  /** The edge's answer for a secret. */
  const check = async (secret: string) => {
    const checked = await keys.check({ secret });
    return checked.ok ? 'ok' : `${checked.status} ${checked.code}`;
  };
  const create = async (name: string, more: object = {}) =>
    test.keys.create({ name, roles: ['VIEWER'], ...more }, OPERATOR);
  /** Waits until the edge has taken all changes so far. */
  const taken = async () => {
    const { key: last, apiKey } = await create('Last');
    await until(async () => (await check(last)) === 'ok');
    await test.keys.delete([apiKey.id], OPERATOR);
  };
  const open = (shown: string | { file: string } = token, leaseMs = LONG_LEASE_MS) =>
    openEdgeStore(new HttpFeed({ origin: origin.url, token: shown, leaseMs, log }), { log });
  /** Replaces the edge by one with a short lease. */
  const openShort = async (leaseMs = LEASE_MS, shown?: string | { file: string }) => {
    await keys.close();
    edge = await open(shown, leaseMs);
    keys = openKeysOver(edge, createCatalog({}));
  };

  beforeEach(async () => {
    test = await startTestService();
    test.time.now = Date.now();
    origin = await startFaultyOrigin(test.url);
    for (let index = 0; index < 4; index += 1) await create(`before ${index}`);
    ({ key: token } = await test.keys.create({ name: 'Edge', permissions: ['EDGE:READ_ANY'] }, OPERATOR));
    edge = await open();
    keys = openKeysOver(edge, createCatalog({}));
  });

  afterEach(async () => {
    await keys.close();
    await origin.close();
    await test.stop();
    lines.length = 0;
  });

  it('has the keys of its origin, and follows their changes', async () => {
    assert.equal(edge.state().keys, 5);
    const { key: secret, apiKey: key } = await create('New');
    await taken();
    assert.equal(await check(secret), 'ok');
    // The server knows of this edge, so the change waits for it.
    await test.keys.setEnabled(key.id, false, OPERATOR);
    assert.equal(await check(secret), '401 UNAUTHENTICATED');
    await test.keys.setEnabled(key.id, true, OPERATOR);
    await taken();
    assert.equal(await check(secret), 'ok');
    await test.keys.delete([key.id], OPERATOR);
    assert.equal(await check(secret), '401 UNAUTHENTICATED');
    assert.equal(edge.state().keys, 5);
  });

  it('goes by the clock of its own machine, except for a secret that was rotated without a grace', async () => {
    const { key: secret } = await create('Short', { expiresIn: '1h' });
    test.time.now += 600_000;
    const { key: over } = await create('Over', { expiresIn: '5m' });
    const { key: replaced, apiKey: key } = await create('Rotated');
    await test.keys.rotate(key.id, { grace: '0s' }, OPERATOR);
    test.time.now -= 2 * 3_600_000;
    const { key: expired } = await create('Expired', { expiresIn: '1h' });
    await taken();
    assert.deepEqual([await check(secret), await check(over)], ['ok', 'ok']);
    assert.deepEqual([await check(expired), await check(replaced)], ['401 UNAUTHENTICATED', '401 UNAUTHENTICATED']);
  });

  it('accepts both secrets of a rotation until its grace ends', async () => {
    const { key: secret, apiKey: key } = await create('Rotated');
    const { key: next } = await test.keys.rotate(key.id, { grace: '1h' }, OPERATOR);
    await taken();
    assert.deepEqual([await check(secret), await check(next)], ['ok', 'ok']);
    await test.keys.finishRotation(key.id, OPERATOR);
    assert.deepEqual([await check(secret), await check(next)], ['401 UNAUTHENTICATED', 'ok']);
  });

  it('takes another token from its file while it runs', async () => {
    const tokenFile = join(tempFolder(), 'edge.key');
    writeFileSync(tokenFile, token, { mode: 0o600 });
    await openShort(LEASE_MS, { file: tokenFile });
    await rotateToken(test, 'Edge', {
      tokenFile,
      check,
      hasLease: () => edge.state().leaseSeconds > 0,
      hasLogged: (begin) => lines.some(({ message }) => message.startsWith(begin)),
    });
  });

  it('answers nothing once its lease has ended, and goes on once the origin is back', async () => {
    const { key: secret } = await create('Key');
    await openShort();
    await until(async () => (await check(secret)) === 'ok');
    origin.fate = () => 'drop';
    await until(() => edge.state().leaseSeconds <= 0);
    assert.equal(await check(secret), '503 SERVICE_UNAVAILABLE');
    await assert.rejects(keys.store.check(), { code: 'EDGE_STALE' });
    await assert.rejects(keys.findById('any', OPERATOR), { code: 'EDGE_STALE' });
    origin.fate = () => 'pass';
    await until(async () => (await check(secret)) === 'ok');
    await until(() =>
      keys.store.check().then(
        () => true,
        () => false,
      ),
    );
  });

  it('asks again on another connection before its lease ends', async () => {
    const { key: secret } = await create('Key');
    await openShort(5 * LEASE_MS);
    await taken();
    let requests = 0;
    const fates = ['drop', 'pass', 'half', 'pass', 'lose', 'pass', 'double', 'pass'] as const;
    origin.fate = () => fates[(requests += 1) % fates.length]!;
    const { polls } = origin.counts;
    let least = Infinity;
    await until(async () => {
      least = Math.min(least, edge.state().leaseSeconds);
      assert.equal(await check(secret), 'ok');
      return origin.counts.polls >= polls + 6;
    });
    assert.ok(least > 0);
  });

  it('loads all keys anew where the origin has others', async () => {
    const { key: secret, apiKey: key } = await create('Key');
    await taken();
    assert.equal(await check(secret), 'ok');
    await test.keys.delete([key.id], OPERATOR);
    origin.fate = ({ url }) => (url!.startsWith('/feed?') ? { status: 410 } : 'pass');
    await until(() => origin.counts.snapshots >= 2);
    origin.fate = () => 'pass';
    await taken();
    assert.equal(await check(secret), '401 UNAUTHENTICATED');
    assert.ok(lines.some(({ message }) => message === 'the origin has other changes: all keys are loaded again'));
  });

  it('throws a snapshot away that breaks off', async () => {
    let snapshots = 0;
    origin.fate = ({ url }) => {
      if (url !== '/feed/snapshot') return 'pass';
      snapshots += 1;
      return snapshots === 1 ? 'half' : 'pass';
    };
    const other = await open();
    assert.equal(other.state().keys, edge.state().keys);
    assert.equal(snapshots, 2);
    await other.close();
  });

  it('refuses until all keys are loaded, where it is not waited for them', async () => {
    const { key: secret } = await create('Key');
    const arrived = Promise.withResolvers<void>();
    const loading = Promise.withResolvers<void>();
    origin.fate = async ({ url }) => {
      if (url === '/feed/snapshot') {
        arrived.resolve();
        await loading.promise;
      }
      return 'pass' as const;
    };
    const feed = new HttpFeed({ origin: origin.url, token, leaseMs: LONG_LEASE_MS, log });
    const store = await openEdgeStore(feed, { patienceMs: 0, log });
    const other = openKeysOver(store, createCatalog({}));
    const checkThere = async (shown: string) => {
      const checked = await other.check({ secret: shown });
      return checked.ok ? 'ok' : `${checked.status} ${checked.code}`;
    };
    await arrived.promise;
    for (const shown of [secret, 'svc_nothing']) assert.equal(await checkThere(shown), '503 SERVICE_UNAVAILABLE');
    await assert.rejects(other.store.check(), { code: 'EDGE_STALE' });
    assert.ok(store.state().leaseSeconds < 0 && Number.isFinite(store.state().lagSeconds));
    assert.equal(store.state().keys, 0);
    loading.resolve();
    await until(async () => (await checkThere(secret)) === 'ok');
    assert.equal(await checkThere('svc_nothing'), '401 UNAUTHENTICATED');
    await other.store.check();
    await other.close();
  });

  it('reports what the origin refuses', async () => {
    for (const [status, code] of [
      [401, 'UNAUTHENTICATED'],
      [403, 'FORBIDDEN'],
      [404, 'SERVER_INCOMPATIBLE'],
    ] as const) {
      origin.fate = () => ({ status });
      await assert.rejects(open(), { code });
    }
  });

  it('reports what keys were used for once, though an answer gets lost', async () => {
    const { key: secret, apiKey: key } = await create('Used');
    await taken();
    for (let count = 0; count < 3; count += 1) assert.equal(await check(secret), 'ok');
    let lost = 0;
    origin.fate = ({ url }) => {
      if (url !== '/feed/activity' || lost === 2) return 'pass';
      lost += 1;
      return 'lose';
    };
    await keys.finishActivity();
    assert.equal(await check(secret), 'ok');
    await keys.finishActivity();
    assert.equal((await test.keys.useOf([key.id])).get(key.id)?.uses, 4);
    assert.equal(lost, 2);
  });

  it('holds requests to limits together with the origin', async () => {
    const { key: secret } = await create('Limited', { limits: ['3/h'] });
    await taken();
    assert.deepEqual(
      [await check(secret), await check(secret), await check(secret), await check(secret)],
      ['ok', 'ok', 'ok', '429 RATE_LIMITED'],
    );
    const atOrigin = await test.keys.authenticator.confirm(secret);
    assert.ok('principal' in atOrigin);
    const answer = await test.keys.limiter.enter(atOrigin.principal.restrictions!);
    assert.ok(answer !== 'gone' && !answer.isWithin);
  });

  it('gives its lease back when it is closed, and delays no change after that', async () => {
    await taken();
    assert.equal(edgesOf(test.keys).list().length, 1);
    await keys.close();
    assert.deepEqual(edgesOf(test.keys).list(), []);
    const { count } = edgesOf(test.keys).waited;
    await create('New');
    assert.equal(edgesOf(test.keys).waited.count, count);
    edge = await open();
    keys = openKeysOver(edge, createCatalog({}));
  });

  it('refers to the origin for everything else', async () => {
    for (const work of [
      () => keys.create({ name: 'No', roles: ['VIEWER'] }, OPERATOR),
      () => keys.list({}, OPERATOR),
      () => keys.delete(['any'], OPERATOR),
    ])
      await assert.rejects(work(), { code: 'STORE_REQUIRED', message: new RegExp(origin.url) });
  });
});
