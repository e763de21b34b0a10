import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clocks } from '../../src/edge/edge-copy.ts';
import { type EdgeStore, HttpFeed, openEdgeStore } from '../../src/edge/index.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { openKeysOver, type OpenKeys } from '../../src/service/open-keys.ts';
import { type FaultyOrigin, startFaultyOrigin } from '../support/faulty-origin.ts';
import { collectingLog } from '../support/log.ts';
import { startTestService, type TestService } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const LEASE_MS = 1000;
const GRACE_MS = 600_000;

describe('an edge that starts while its origin is away', () => {
  let test: TestService;
  let origin: FaultyOrigin;
  let tokenFile: string;
  let copyFile: string;
  /** How much later it is than this process knows. */
  let laterMs: number;
  const { log, lines } = collectingLog();
  const opened = new Set<OpenKeys>();

  const clocks = (): Clocks => {
    const awake = performance.now() + laterMs;
    return { boot: 'one', sinceBoot: [awake, awake], wall: Date.now() };
  };
  const open = async () => {
    const feed = new HttpFeed({ origin: origin.url, token: { file: tokenFile }, leaseMs: LEASE_MS, log });
    const store = await openEdgeStore(feed, { graceMs: GRACE_MS, copyFile, clocks, log });
    const keys = openKeysOver(store, createCatalog({}));
    opened.add(keys);
    return { store, keys };
  };
  const create = (name: string, more: object = {}) => test.keys.create({ name, roles: ['VIEWER'], ...more }, OPERATOR);
  const check = async ({ keys }: { keys: OpenKeys }, secret: string) => {
    const checked = await keys.check({ secret });
    return checked.ok ? 'ok' : `${checked.status} ${checked.code}`;
  };
  const count = (message: string) => lines.filter((line) => line.message === message).length;
  /** An edge whose copy is written. */
  const openCopied = async () => {
    const before = count('the copy of the keys was written');
    const edge = await open();
    await until(() => count('the copy of the keys was written') > before);
    return edge;
  };
  /** Resolves once the edges have asked again, and again. */
  const taken = async () => {
    const { polls } = origin.counts;
    await until(() => origin.counts.polls >= polls + 2);
  };
  const close = async ({ keys }: { keys: OpenKeys }) => {
    opened.delete(keys);
    await keys.close();
  };
  /** Cuts the origin off, and kills an edge: what it would do at its end does not count. */
  const kill = async (edge: { keys: OpenKeys }) => {
    origin.fate = () => 'drop';
    const left = `${copyFile}.left`;
    copyFileSync(copyFile, left);
    await close(edge);
    copyFileSync(left, copyFile);
  };
  const isStale = ({ store }: { store: EdgeStore }) => store.staleMs() !== undefined;

  beforeEach(async () => {
    test = await startTestService();
    test.time.now = Date.now();
    origin = await startFaultyOrigin(test.url);
    const { key } = await create('Edge', { roles: [], permissions: ['EDGE:READ_ANY'] });
    tokenFile = join(tempFolder(), 'token');
    copyFile = join(tempFolder(), 'keys');
    writeFileSync(tokenFile, key, { mode: 0o600 });
    laterMs = 0;
  });

  afterEach(async () => {
    origin.fate = () => 'pass';
    for (const keys of opened) await close({ keys });
    await origin.close();
    await test.stop();
    lines.length = 0;
  });

  it('says of each key what it has said before, marks it, and goes on once the origin answers', async () => {
    const { key: secret } = await create('Key');
    const { key: other, apiKey } = await create('Disabled');
    const edge = await openCopied();
    await test.keys.setEnabled(apiKey.id, false, OPERATOR);
    const { key: late } = await create('Late');
    await taken();
    await kill(edge);
    const again = await open();
    const expected = [
      [secret, 'ok'],
      [late, 'ok'],
      [other, '401 UNAUTHENTICATED'],
      ['svc_unknown', '401 UNAUTHENTICATED'],
    ] as const;
    for (const [each, said] of expected) assert.equal(await check(again, each), said);
    assert.ok(isStale(again));
    assert.ok(Number.isFinite(again.store.state().lagSeconds));
    await assert.rejects(again.keys.store.check(), { code: 'EDGE_STALE' });
    assert.equal(count('the origin is away: keys are checked by the copy'), 1);
    origin.fate = () => 'pass';
    await until(() => !isStale(again));
    await again.keys.store.check();
    for (const [each, said] of expected) assert.equal(await check(again, each), said);
  });

  it('waits for no copy while the origin answers, nor uses it where that refuses the token', async () => {
    const edge = await openCopied();
    await close(edge);
    const again = await open();
    assert.ok(!isStale(again));
    await close(again);
    origin.fate = () => ({ status: 401 });
    await assert.rejects(open(), { code: 'UNAUTHENTICATED' });
    assert.equal(count('the origin is away: keys are checked by the copy'), 0);
  });

  it('does not wait for an origin that is silent', async () => {
    const { key: secret } = await create('Key');
    await kill(await openCopied());
    origin.fate = () => 'silence';
    lines.length = 0;
    assert.equal(await check(await open(), secret), 'ok');
    // Nothing has failed yet.
    assert.equal(count('the origin gives no lease'), 0);
  });

  it('answers no longer than one that was cut off, however often it starts', async () => {
    const { key: secret } = await create('Key');
    await kill(await openCopied());
    const copied = readFileSync(copyFile);
    for (laterMs = 0; laterMs < GRACE_MS; laterMs += GRACE_MS / 3) {
      const again = await open();
      assert.equal(await check(again, secret), 'ok');
      await close(again);
    }
    assert.deepEqual(readFileSync(copyFile), copied);
    // So little of the grace is left.
    laterMs = GRACE_MS - 300;
    const last = await open();
    await until(async () => (await check(last, secret)) === '503 SERVICE_UNAVAILABLE');
    laterMs = GRACE_MS + LEASE_MS;
    const opening = open();
    await until(() => count('the copy of the keys is not used') === 1);
    origin.fate = () => 'pass';
    assert.equal(await check(await opening, secret), 'ok');
  });

  it('accepts a key that was deleted meanwhile in the grace alone, and none that it knew to be deleted', async () => {
    const [known, unknown] = [await create('Known'), await create('Unknown')];
    const edge = await openCopied();
    await test.keys.delete([known.apiKey.id], OPERATOR);
    await taken();
    await kill(edge);
    await test.keys.delete([unknown.apiKey.id], OPERATOR);
    const again = await open();
    assert.equal(await check(again, known.key), '401 UNAUTHENTICATED');
    assert.equal(await check(again, unknown.key), 'ok');
    origin.fate = () => 'pass';
    await until(() => !isStale(again));
    assert.equal(await check(again, unknown.key), '401 UNAUTHENTICATED');
    // What it has taken since is in the copy.
    await until(() => count('the copy of the keys was written') === 2);
    await kill(again);
    assert.equal(await check(await open(), unknown.key), '401 UNAUTHENTICATED');
  });

  it('follows another token, with which the copy is written anew', async () => {
    const { key: secret } = await create('Key');
    const edge = await openCopied();
    const { key: next } = await test.keys.rotate((await test.keys.findByName('Edge', OPERATOR))!.id, {}, OPERATOR);
    writeFileSync(tokenFile, next, { mode: 0o600 });
    await create('Changed');
    await until(() => count('the copy of the keys was written') === 2);
    await kill(edge);
    assert.equal(await check(await open(), secret), 'ok');
  });

  it('loads what an origin has that was put back, and copies that', async () => {
    const { key: secret, apiKey } = await create('Key');
    const edge = await openCopied();
    origin.fate = ({ url }) => (url!.startsWith('/feed?') ? { status: 410 } : 'pass');
    await until(() => count('the origin has other changes: all keys are loaded anew') > 0);
    origin.fate = () => 'pass';
    await until(() => count('the copy of the keys was written') === 2);
    await test.keys.delete([apiKey.id], OPERATOR);
    await taken();
    await kill(edge);
    assert.equal(await check(await open(), secret), '401 UNAUTHENTICATED');
  });
});
