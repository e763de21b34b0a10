import assert from 'node:assert/strict';
import { edgesOf } from '../../src/features/edges/index.ts';
import { openEdgeStore, HttpFeed, type EdgeStore } from '../../src/features/edge/index.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { openKeysOver, type OpenKeys } from '../../src/service/open-keys.ts';
import { collectingLog } from '../support/log.ts';
import { type FaultyOrigin, startFaultyOrigin } from '../support/faulty-origin.ts';
import { startTestService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const LEASE_MS = 500;

describe('an edge without requests', () => {
  let test: TestService;
  let origin: FaultyOrigin;
  let edge: EdgeStore;
  let keys: OpenKeys;
  let secret: string;
  let id: string;
  const { log, lines } = collectingLog();

  const check = async (given: string) => {
    const checked = await keys.check({ secret: given });
    return checked.ok ? 'ok' : `${checked.status} ${checked.code}`;
  };
  const create = (name: string, grants: object = { roles: ['VIEWER'] }) =>
    test.keys.create({ name, ...grants }, OPERATOR);
  const isResting = () => edge.state().leaseSeconds === 0;
  const open = async (more: Parameters<typeof openEdgeStore>[1]) => {
    const { key: token } = await create('Edge', { permissions: ['EDGE:READ_ANY'] });
    edge = await openEdgeStore(new HttpFeed({ origin: origin.url, token, leaseMs: LEASE_MS, log }), { log, ...more });
    keys = openKeysOver(edge, createCatalog({}));
  };

  beforeEach(async () => {
    lines.length = 0;
    test = await startTestService();
    test.time.now = Date.now();
    origin = await startFaultyOrigin(test.url);
    ({
      key: secret,
      apiKey: { id },
    } = await create('Key'));
  });
  afterEach(async () => {
    await keys.close();
    await origin.close();
    await test.stop();
  });

  describe('rests, so that', () => {
    beforeEach(async () => {
      await open({ idleMs: 0 });
      await until(isResting);
    });

    it('it gets changes, which do not wait for it, and a lease before it answers', async () => {
      await until(() =>
        edgesOf(test.keys)
          .list()
          .some(({ restMs, leaseMs }) => restMs > 0 && leaseMs === 0),
      );
      const { count } = edgesOf(test.keys).waited;
      await test.keys.setEnabled(id, false, OPERATOR);
      assert.equal(edgesOf(test.keys).waited.count, count);
      assert.equal(await check(secret), '401 UNAUTHENTICATED');
      assert.ok(edge.state().leaseSeconds > 0);
      await test.keys.setEnabled(id, true, OPERATOR);
      const { key: other, apiKey: deleted } = await create('Other');
      await until(isResting);
      await test.keys.delete([deleted.id], OPERATOR);
      const asked = Array.from({ length: 20 }, (_, index) => (index % 2 ? secret : other));
      const answers = await Promise.all(asked.map(check));
      assert.deepEqual(
        answers,
        asked.map((given) => (given === secret ? 'ok' : '401 UNAUTHENTICATED')),
      );
      assert.deepEqual(
        lines.filter(({ level }) => level !== 'info').map(({ message }) => message),
        [],
      );
    });

    it('it is listed as resting, without a lag', async () => {
      await until(async () => (await edgesOf(test.keys).all()).some(({ isResting: rests }) => rests));
      const [listed] = edgesOf(test.keys).list();
      assert.equal(listed!.lagMs, 0);
      assert.equal(await check(secret), 'ok');
      const [asking] = edgesOf(test.keys).list();
      assert.ok(asking!.leaseMs > 0);
    });

    it('it refuses at once where its origin is gone, and goes on once that is back', async () => {
      origin.fate = () => 'drop';
      assert.equal(await check(secret), '503 SERVICE_UNAVAILABLE');
      await assert.rejects(keys.store.check(), { code: 'EDGE_STALE' });
      origin.fate = () => 'pass';
      await until(async () => (await check(secret)) === 'ok');
    });

    it('it has a lease from its request on only, however long it has rested', async () => {
      await until(() =>
        edgesOf(test.keys)
          .list()
          .some(({ restMs }) => restMs > 0),
      );
      // It receives a change and rests again.
      await create('Other');
      await until(() => edge.state().keys === 3);
      assert.ok(isResting());
      assert.equal(await check(secret), 'ok');
      assert.ok(edge.state().leaseSeconds * 1000 <= LEASE_MS);
    });

    it('it answers all the same where its connection was closed meanwhile', async () => {
      const began = performance.now();
      await until(
        () =>
          performance.now() - began > 200 &&
          edgesOf(test.keys)
            .list()
            .some(({ restMs }) => restMs > 0),
      );
      const { polls } = origin.counts;
      origin.cut();
      await until(() => origin.counts.polls > polls);
      assert.equal(await check(secret), 'ok');
      assert.ok(!lines.some(({ level }) => level === 'warn'));
    });

    it('it refuses where its origin is silent', async () => {
      origin.fate = () => 'silence';
      assert.equal(await check(secret), '503 SERVICE_UNAVAILABLE');
    });

    it('it is ready, and rests on after that was asked', async () => {
      await keys.store.check();
      assert.ok(edge.state().leaseSeconds > 0);
      await until(isResting);
    });
  });

  it('does not rest within ten seconds', async () => {
    await open({});
    const { polls } = origin.counts;
    await until(() => origin.counts.polls >= polls + 4);
    assert.equal(edgesOf(test.keys).list()[0]!.restMs, 0);
    assert.ok(edge.state().leaseSeconds > 0);
  });
});
