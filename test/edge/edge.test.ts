import assert from 'node:assert/strict';
import { openEdgeStore, HttpFeed, type EdgeStore } from '../../src/edge/index.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { NO_LOG } from '../../src/log.ts';
import { openKeysOver, type OpenKeys } from '../../src/service/open-keys.ts';
import { collectingLog } from '../support/log.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';
import { type Origin, startOrigin } from '../support/origin.ts';
import { until } from '../support/until.ts';

const LEASE_MS = 1000;

describe('an edge', () => {
  let test: TestKeys;
  let origin: Origin;
  let edge: EdgeStore;
  let keys: OpenKeys;
  const { log, lines } = collectingLog();

  /** What the edge says of a secret. */
  const check = async (secret: string) => {
    const checked = await keys.check({ secret });
    return checked.ok ? 'ok' : `${checked.status} ${checked.code}`;
  };
  /** Resolves once the edge has taken all changes. */
  const taken = async () => {
    const { polls } = origin.counts;
    origin.changed();
    await until(() => origin.counts.polls >= polls + 2);
  };
  const create = async (name: string, more: object = {}) =>
    test.keys.create({ name, roles: ['VIEWER'], ...more }, OPERATOR);

  beforeEach(async () => {
    test = await openTestKeys();
    test.time.now = Date.now();
    origin = await startOrigin(test, () => test.time.now);
    for (let index = 0; index < 5; index += 1) await create(`before ${index}`);
    const feed = new HttpFeed({ origin: origin.url, token: 'token', leaseMs: LEASE_MS, log });
    edge = await openEdgeStore(feed, { log });
    keys = await openKeysOver(edge, createCatalog({}));
  });

  afterEach(async () => {
    await keys.close();
    await origin.stop();
    await test.store.close();
    lines.length = 0;
  });

  it('has the keys of its origin, and follows their changes', async () => {
    assert.equal(edge.state().keys, 5);
    const { key: secret, apiKey: key } = await create('New');
    assert.equal(await check(secret), '401 UNAUTHENTICATED');
    await taken();
    assert.equal(await check(secret), 'ok');
    await test.keys.setEnabled(key.id, false, OPERATOR);
    await taken();
    assert.equal(await check(secret), '401 UNAUTHENTICATED');
    await test.keys.setEnabled(key.id, true, OPERATOR);
    await taken();
    assert.equal(await check(secret), 'ok');
    await test.keys.delete([key.id], OPERATOR);
    await taken();
    assert.equal(await check(secret), '401 UNAUTHENTICATED');
    assert.equal(edge.state().keys, 5);
  });

  it('goes by the time of its origin', async () => {
    const { key: secret } = await create('Short', { expiresIn: '1h' });
    await taken();
    assert.equal(await check(secret), 'ok');
    test.time.now += 3_600_001;
    await taken();
    assert.equal(await check(secret), '401 UNAUTHENTICATED');
  });

  it('accepts both secrets of a rotation until its grace ends', async () => {
    const { key: secret, apiKey: key } = await create('Rotated');
    const { key: next } = await test.keys.rotate(key.id, { grace: '1h' }, OPERATOR);
    await taken();
    assert.deepEqual([await check(secret), await check(next)], ['ok', 'ok']);
    await test.keys.finishRotation(key.id, OPERATOR);
    await taken();
    assert.deepEqual([await check(secret), await check(next)], ['401 UNAUTHENTICATED', 'ok']);
  });

  it('answers nothing once its lease has ended, and goes on once the origin is back', async () => {
    const { key: secret } = await create('Key');
    await taken();
    assert.equal(await check(secret), 'ok');
    origin.intercept = (incoming) => {
      incoming.socket.destroy();
      return true;
    };
    origin.changed();
    await until(() => edge.state().leaseSeconds <= 0);
    assert.equal(await check(secret), '503 SERVICE_UNAVAILABLE');
    await assert.rejects(keys.store.check(), { code: 'EDGE_STALE' });
    await assert.rejects(keys.findById('any', OPERATOR), { code: 'EDGE_STALE' });
    origin.intercept = undefined;
    await until(() => edge.state().leaseSeconds > 0);
    assert.equal(await check(secret), 'ok');
    await keys.store.check();
  });

  it('asks again on another connection before its lease ends', async () => {
    const { key: secret } = await create('Key');
    await taken();
    let cut = 0;
    origin.intercept = (incoming, outgoing) => {
      cut += 1;
      if (cut % 2 === 0) return false;
      if (cut % 4 === 1) incoming.socket.destroy();
      else outgoing.writeHead(200, { 'Content-Length': 1000 }).write('+["half');
      return true;
    };
    const { polls } = origin.counts;
    let least = Infinity;
    await until(async () => {
      least = Math.min(least, edge.state().leaseSeconds);
      assert.equal(await check(secret), 'ok');
      return origin.counts.polls >= polls + 8;
    });
    assert.ok(least > 0);
  });

  it('loads all keys anew where the origin has others', async () => {
    const { key: secret, apiKey: key } = await create('Key');
    await taken();
    assert.equal(await check(secret), 'ok');
    await test.keys.delete([key.id], OPERATOR);
    origin.intercept = (incoming, outgoing) => {
      if (!incoming.url!.startsWith('/feed?')) return false;
      outgoing.writeHead(410).end();
      origin.intercept = undefined;
      return true;
    };
    origin.changed();
    await until(() => origin.counts.snapshots === 2);
    await taken();
    assert.equal(await check(secret), '401 UNAUTHENTICATED');
    assert.ok(lines.some(({ message }) => message === 'the origin has other changes: all keys are loaded anew'));
  });

  it('throws a snapshot away that breaks off', async () => {
    let snapshots = 0;
    const starting = (incoming: { url?: string | undefined }) => incoming.url === '/feed/snapshot';
    origin.intercept = (incoming, outgoing) => {
      if (!starting(incoming)) return false;
      snapshots += 1;
      if (snapshots === 3) return false;
      if (snapshots === 1) outgoing.writeHead(200).end('+["half"');
      else outgoing.writeHead(200).end('');
      return true;
    };
    const feed = new HttpFeed({ origin: origin.url, token: 'token', leaseMs: LEASE_MS, log: NO_LOG });
    const other = await openEdgeStore(feed);
    assert.equal(other.state().keys, 5);
    await other.close();
  });

  it('tells what the origin refuses', async () => {
    for (const [status, code] of [
      [401, 'UNAUTHENTICATED'],
      [403, 'FORBIDDEN'],
      [404, 'SERVER_INCOMPATIBLE'],
    ] as const) {
      origin.intercept = (_, outgoing) => {
        outgoing.writeHead(status).end();
        return true;
      };
      const feed = new HttpFeed({ origin: origin.url, token: 'token', leaseMs: LEASE_MS, log: NO_LOG });
      await assert.rejects(openEdgeStore(feed), { code });
    }
  });

  it('reports what keys were used for once, though an answer gets lost', async () => {
    const { key: secret, apiKey: key } = await create('Used');
    await taken();
    for (let count = 0; count < 3; count += 1) assert.equal(await check(secret), 'ok');
    let lost = 0;
    origin.intercept = (incoming, outgoing) => {
      if (incoming.url !== '/feed/activity' || lost === 3) return false;
      lost += 1;
      // The origin has it, and cannot say so.
      outgoing.writeHead = () => {
        outgoing.destroy();
        return outgoing;
      };
      return false;
    };
    await keys.finishActivity();
    assert.equal(await check(secret), 'ok');
    await keys.finishActivity();
    assert.equal((await test.keys.usage.usageOf([key.id])).get(key.id)?.uses, 4);
    assert.equal(lost, 3);
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

  it('leaves to the origin what it cannot do itself', async () => {
    for (const work of [
      () => keys.create({ name: 'No', roles: ['VIEWER'] }, OPERATOR),
      () => keys.list({}, OPERATOR),
      () => keys.delete(['any'], OPERATOR),
    ])
      await assert.rejects(work(), { code: 'STORE_REQUIRED', message: new RegExp(origin.url) });
  });
});
