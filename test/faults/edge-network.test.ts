import assert from 'node:assert/strict';
import { HttpFeed, openEdgeStore, type EdgeStore } from '../../src/features/edge/index.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { NO_LOG } from '../../src/log.ts';
import { openKeysOver, type OpenKeys } from '../../src/service/open-keys.ts';
import { type Fate, type FaultyOrigin, startFaultyOrigin } from '../support/faulty-origin.ts';
import { Random } from '../support/random.ts';
import { startTestService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const LEASE_MS = 400;
const CHANGES = 15;
const FATES: readonly Fate[] = ['pass', 'pass', 'pass', 'drop', 'half', 'lose', 'silence', 'double', { status: 503 }];

describe('edges on a bad network', () => {
  let test: TestService;
  const edges: { origin: FaultyOrigin; store: EdgeStore; keys: OpenKeys }[] = [];
  const random = new Random(7);

  before(async () => {
    test = await startTestService();
    test.time.now = Date.now();
    for (let index = 0; index < 3; index += 1) {
      const { key: token } = await test.keys.create(
        { name: `Edge ${index}`, permissions: ['EDGE:READ_ANY'] },
        OPERATOR,
      );
      const origin = await startFaultyOrigin(test.url);
      const store = await openEdgeStore(new HttpFeed({ origin: origin.url, token, leaseMs: LEASE_MS, log: NO_LOG }));
      edges.push({ origin, store, keys: openKeysOver(store, createCatalog({})) });
    }
    for (const { origin } of edges) origin.fate = () => random.pick(FATES);
  });

  after(async () => {
    for (const { origin, keys } of edges) {
      origin.fate = () => 'pass';
      await keys.close();
      await origin.close();
    }
    await test.stop();
  });

  it('accept no key after its change has returned, and no other is refused while there is a lease', async () => {
    const { key: kept } = await test.keys.create({ name: 'Kept', roles: ['VIEWER'] }, OPERATOR);
    await Promise.all(edges.map(({ keys }) => until(async () => (await keys.check({ secret: kept })).ok)));
    const seen = { accepted: 0, refused: 0, unavailable: 0 };
    for (let change = 0; change < CHANGES; change += 1) {
      const { key: secret, apiKey: key } = await test.keys.create(
        { name: `Key ${change}`, roles: ['VIEWER'] },
        OPERATOR,
      );
      // At least one edge has cached it.
      await Promise.race(edges.map(({ keys }) => until(async () => (await keys.check({ secret })).ok)));
      const loss = [
        () => test.keys.delete([key.id], OPERATOR),
        () => test.keys.setEnabled(key.id, false, OPERATOR),
        () => test.keys.rotate(key.id, { grace: '0s' }, OPERATOR),
      ][change % 3]!;
      await loss();
      for (const { keys, store } of edges) {
        const checked = await keys.check({ secret });
        assert.ok(!checked.ok, `change ${change} was not known`);
        const before = store.state().leaseSeconds;
        const other = await keys.check({ secret: kept });
        if (before > 0 && store.state().leaseSeconds > 0) assert.ok(other.ok, `change ${change}`);
        seen[other.ok ? 'accepted' : other.status === 503 ? 'unavailable' : 'refused'] += 1;
      }
    }
    assert.equal(seen.refused, 0);
    assert.ok(seen.accepted > 0, JSON.stringify(seen));
  });
});
