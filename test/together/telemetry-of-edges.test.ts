import assert from 'node:assert/strict';
import { defaultConfig } from '../../src/config/default-config.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { NO_LOG } from '../../src/log.ts';
import type { ServedService } from '../../src/service/configured-server.ts';
import { openEdge, type OpenEdge } from '../../src/features/edge/cli/edge-service.ts';
import { edgeMetrics } from '../../src/features/edge/metrics.ts';
import { feedMetrics } from '../../src/features/edges/metrics.ts';
import { Metrics } from '../../src/features/telemetry/metrics.ts';
import { parseExposition, valueOf } from '../support/exposition.ts';
import { type FaultyOrigin, startFaultyOrigin } from '../support/faulty-origin.ts';
import { startTestService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const LEASE_SECONDS = 2;

describe('metrics of edges', () => {
  let test: TestService;
  let network: FaultyOrigin;
  let edge: OpenEdge;
  let served: ServedService;
  let ofOrigin: Metrics;
  let ofEdge: Metrics;

  const scrape = async (metrics: Metrics) => {
    const families = parseExposition(await metrics.text());
    return (name: string, labels: Record<string, string> = {}) => valueOf(families, `svc_api_${name}`, labels)!;
  };
  const create = (name: string, more: object = { roles: ['VIEWER'] }) => test.keys.create({ name, ...more }, OPERATOR);
  /** Asks the edge about a secret. */
  const ask = async (secret: string) => {
    const { status } = await fetch(`${served.server.url}/auth/traefik?permission=INFO:READ_ANY`, {
      headers: {
        Authorization: `Bearer ${secret}`,
        'X-Forwarded-Host': 'app.example.org',
        'X-Forwarded-Method': 'GET',
        'X-Forwarded-Proto': 'https',
        'X-Forwarded-Uri': '/',
      },
    });
    return status;
  };
  /** Waits until the edge has all changes. */
  const taken = async () => {
    const { polls } = network.counts;
    await until(() => network.counts.polls >= polls + 2);
  };

  beforeEach(async () => {
    test = await startTestService();
    test.time.now = Date.now();
    network = await startFaultyOrigin(test.url);
    const { key: token } = await create('Edge', { permissions: ['EDGE:READ_ANY'] });
    const asked = {
      origin: network.url,
      token,
      leaseMs: LEASE_SECONDS * 1000,
      log: NO_LOG,
    };
    const guard = {
      permissions: undefined,
      anyKey: false,
      resource: undefined,
      anyMethod: false,
      upstream: undefined,
      forwardCredential: false,
      timeoutMs: 1000,
    };
    const opening = { config: defaultConfig(), catalog: createCatalog({}), maxVerifiedKeys: undefined };
    edge = await openEdge(asked, guard, opening);
    served = await edge.start(
      { keys: edge.keys, config: defaultConfig(), extensions: [] },
      { host: '127.0.0.1', port: 0 },
    );
    ofOrigin = new Metrics();
    ofOrigin.addOver('edges', feedMetrics);
    ofOrigin.measure(test.keys);
    ofEdge = new Metrics();
    ofEdge.measure(edge.keys);
    ofEdge.add('edge', edgeMetrics(edge.state));
  });

  afterEach(async () => {
    await served.server.stop(0);
    network.fate = () => 'pass';
    await edge.keys.close();
    await network.close();
    await test.stop();
  });

  it('report at the edge its keys, and for how long they are valid', async () => {
    for (const name of ['One', 'Two', 'Three']) await create(name);
    await taken();
    const found = await scrape(ofEdge);
    assert.equal(found('edge_keys'), 4);
    assert.equal(found('edge_table_bytes'), edge.state().tableBytes);
    assert.ok(found('edge_lease_seconds') > 0 && found('edge_lease_seconds') <= LEASE_SECONDS);
    assert.ok(found('edge_lag_seconds') >= 0);
    network.fate = () => 'drop';
    await until(() => edge.state().leaseSeconds < 0);
    const later = await scrape(ofEdge);
    assert.ok(later('edge_lease_seconds') < 0);
    assert.ok(later('edge_lag_seconds') > found('edge_lag_seconds'));
    assert.equal(later('edge_keys'), 4);
  });

  it('count at the edge accepted and refused keys, with the reasons', async () => {
    const { key: good } = await create('Good');
    const { key: off, apiKey: disabled } = await create('Disabled');
    // The edge uses the machine's clock, so keys that have expired by it are created earlier.
    test.time.now -= 3_600_001;
    const { key: short } = await create('Short', { roles: ['VIEWER'], expiresIn: '1h' });
    const { key: former, apiKey: rotated } = await create('Rotated');
    await test.keys.rotate(rotated.id, { grace: '1h' }, OPERATOR);
    test.time.now += 3_600_001;
    const { key: gone, apiKey: deleted } = await create('Deleted');
    await test.keys.setEnabled(disabled.id, false, OPERATOR);
    await test.keys.delete([deleted.id], OPERATOR);
    await taken();
    const statuses = [];
    for (const secret of [good, good, off, short, former, gone, gone, 'svc_nothing']) statuses.push(await ask(secret));
    assert.deepEqual(statuses, [200, 200, 401, 401, 401, 401, 401, 401]);
    const found = await scrape(ofEdge);
    const refused = ['disabled', 'expired', 'rotated', 'unknown', 'malformed', 'damaged'].map((reason) =>
      found('key_checks_total', { result: 'refused', reason }),
    );
    assert.deepEqual(refused, [1, 1, 1, 2, 1, 0]);
    assert.deepEqual(
      ['hit', 'miss'].map((result) => found('key_checks_total', { result })),
      [1, 1],
    );
  });

  it('say at the origin how many edges answer, how far they are behind, and how long changes have waited', async () => {
    const { apiKey } = await create('Key');
    await taken();
    const before = await scrape(ofOrigin);
    const edges = (found: typeof before) =>
      ['answering', 'resting', 'behind'].map((state) => found('feed_edges', { state }));
    assert.deepEqual(edges(before), [1, 0, 0]);
    assert.ok(before('feed_lag_seconds') >= 0);
    // The origin is now silent, but the edge still has its lease.
    network.fate = () => 'silence';
    await test.keys.setEnabled(apiKey.id, false, OPERATOR);
    await until(async () => edges(await scrape(ofOrigin))[0] === 0);
    const after = await scrape(ofOrigin);
    assert.deepEqual(edges(after), [0, 0, 1]);
    assert.equal(after('feed_changes_waited_total') - before('feed_changes_waited_total'), 1);
    assert.ok(after('feed_changes_waited_seconds_total') > before('feed_changes_waited_seconds_total'));
    assert.ok(after('feed_lag_seconds') > 0);
    // The change does not wait again for an edge that does not answer.
    await test.keys.setEnabled(apiKey.id, true, OPERATOR);
    const last = await scrape(ofOrigin);
    assert.equal(last('feed_changes_waited_total'), after('feed_changes_waited_total'));
    assert.ok(last('feed_lag_seconds') > after('feed_lag_seconds'));
  });
});
