import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { createApp } from '../../../src/service/create-app.ts';
import { listen, type RunningServer } from '../../../src/http/listen.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { AddedMetric } from '../../../src/keys/added/index.ts';
import { aggregated, KeyCounter, Metrics, type Sample } from '../../../src/features/telemetry/metrics.ts';
import { type MetricsServer, serveMetrics } from '../../../src/features/telemetry/metrics-server.ts';
import { parseExposition, valueOf } from '../../support/exposition.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { collectingLog } from '../../support/log.ts';
import { sendRaw } from '../../support/raw-http.ts';
import { query } from '../../support/server.ts';
import { until } from '../../support/until.ts';

describe('metrics', () => {
  let test: TestKeys;
  let service: RunningServer;
  let metrics: Metrics;
  let server: MetricsServer;

  beforeEach(async () => {
    metrics = new Metrics();
    test = await openTestKeys({ asServer: true, timer: metrics.storeTimer });
    metrics.measure(test.keys);
    const app = await createApp({ keys: test.keys });
    service = await listen({ app, host: '127.0.0.1', port: 0, watchers: [metrics.requests] });
    server = await serveMetrics(
      { host: '127.0.0.1', port: 0 },
      { contentType: 'text/plain', scrape: () => metrics.text() },
    );
  });
  afterEach(async () => {
    await Promise.all([service.stop(0), server.stop()]);
    await test.store.close();
  });
  const scrape = async () => parseExposition(await (await fetch(server.url)).text());
  /** Scrapes once all requests have ended: a client receives its answer a moment earlier. */
  const scrapeAtRest = async () => {
    let found = await scrape();
    await until(async () => valueOf((found = await scrape()), 'svc_api_requests_in_flight') === 0);
    return found;
  };

  it('are in the text format of Prometheus, with names by its conventions, before and after requests', async () => {
    await scrape();
    const { key: secret } = await test.keys.create({ name: 'Key', roles: ['ADMIN'] }, OPERATOR);
    await query(service.url, secret, '{ me { name } }');
    const families = await scrapeAtRest();
    for (const [name, { help }] of families) assert.ok(help.length > 5, name);
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_p99_seconds',
    ])
      assert.ok((valueOf(families, name) ?? -1) >= 0, name);
    assert.equal(valueOf(families, 'svc_api_build_info'), 1);
  });

  it('of a plugin have no value if invalid, and the log says so once', async () => {
    const { log, lines } = collectingLog();
    metrics = new Metrics(undefined, log);
    const reads: readonly (() => unknown)[] = [
      () => [[-1]],
      () => [[1, { team: 'web' }]],
      () => [['1']],
      () => [[NaN]],
      () => [[1, { label: 1 }]],
      () => [undefined],
      () => 'text',
      () => undefined,
      () => Promise.reject(new Error('broken')),
      () => new Promise(() => {}),
    ];
    const added = reads.flatMap((read, index) => {
      const wrong = { name: `svc_api_wrong_${index}_total`, kind: 'counter', help: 'Wrong.', read } as AddedMetric;
      return [
        { ...wrong, labels: ['label'] },
        { ...wrong, name: `svc_api_wrong_alone_${index}_total` },
      ];
    });
    metrics.add('svc-api-wrong', added);
    const read = () => [[-1] as const];
    metrics.add('svc-api-wrong', [{ name: 'svc_api_wrong_gauge', kind: 'gauge', help: 'Right.', read }]);
    const families = [await scrape(), await scrape()][1]!;
    assert.equal(valueOf(families, 'svc_api_wrong_gauge'), -1);
    assert.equal(valueOf(families, 'svc_api_build_info'), 1);
    for (const { name } of added) assert.equal(valueOf(families, name), undefined, name);
    const logged = lines.map(({ fields }) => (fields as { metric: string }).metric);
    assert.deepEqual(logged.toSorted(), added.map(({ name }) => name).toSorted());
  });

  it('count requests by endpoint and status, and operations by type and outcome', async () => {
    const { key: secret } = await test.keys.create({ name: 'Key', roles: ['ADMIN'] }, OPERATOR);
    for (let time = 0; time < 3; time += 1) await query(service.url, secret, '{ me { name } }');
    await query(service.url, secret, 'mutation { deleteApiKeys(ids: ["x"]) { deleted } }');
    await query(service.url, 'nonsense', '{ me { name } }');
    await fetch(`${service.url}/nothing`);
    await sendRaw(service.url, 'NONSENSE\r\n\r\n');
    const families = await scrapeAtRest();
    const requests = (endpoint: string, code: string) =>
      valueOf(families, 'svc_api_requests_total', { endpoint, code });
    assert.deepEqual([requests('graphql', '200'), requests('graphql', '401')], [4, 1]);
    assert.deepEqual([requests('other', '404'), requests('other', '400')], [1, 1]);
    const operations = (type: string) => valueOf(families, 'svc_api_graphql_operations_total', { type, outcome: 'ok' });
    assert.deepEqual([operations('query'), operations('mutation')], [3, 1]);
    assert.equal(valueOf(families, 'svc_api_request_duration_seconds_count', { endpoint: 'graphql' }), 5);
  });

  it('count checks of keys by result, limits, cached keys and pending writes', async () => {
    const { key: secret, apiKey: key } = await test.keys.create(
      { name: 'Key', roles: ['ADMIN'], limits: ['3/h'] },
      OPERATOR,
    );
    for (let time = 0; time < 5; time += 1) await query(service.url, secret, '{ me { name } }');
    const before = await scrapeAtRest();
    assert.equal(valueOf(before, 'svc_api_key_checks_total', { result: 'miss' }), 1);
    assert.equal(valueOf(before, 'svc_api_key_checks_total', { result: 'hit' }), 4);
    assert.equal(valueOf(before, 'svc_api_limited_requests_total'), 2);
    assert.ok(valueOf(before, 'svc_api_limit_leases_total')! >= 1);
    assert.deepEqual(
      ['svc_api_verified_keys', 'svc_api_unwritten_uses', 'svc_api_limited_keys'].map((name) => valueOf(before, name)),
      [1, 3, 1],
    );
    assert.ok(valueOf(before, 'svc_api_store_duration_seconds_count', { operation: 'write' })! >= 2);
    await test.keys.setEnabled(key.id, false, OPERATOR);
    await query(service.url, secret, '{ me { name } }');
    await query(service.url, 'x', '{ me { name } }');
    await test.keys.finishActivity();
    const after = await scrapeAtRest();
    const refused = (reason: string) => valueOf(after, 'svc_api_key_checks_total', { result: 'refused', reason });
    assert.deepEqual([refused('disabled'), refused('malformed'), refused('unknown')], [1, 1, 0]);
    assert.deepEqual([valueOf(after, 'svc_api_verified_keys'), valueOf(after, 'svc_api_unwritten_uses')], [0, 0]);
  });

  it('have the same number of series, whatever clients send', async () => {
    const { key: secret } = await test.keys.create({ name: 'Key', roles: ['ADMIN'] }, OPERATOR);
    const seriesOf = async () =>
      [...(await scrapeAtRest())].reduce(
        (sum, [name, { samples }]) => sum + (name.startsWith('svc_api') ? samples.length : 0),
        0,
      );
    const attack = async (round: string) => {
      for (let time = 0; time < 20; time += 1) {
        const made = `${round}${time}`;
        await query(service.url, secret, `query Q${made} { me { name } }`);
        await query(service.url, made, '{ me { name } }');
        await fetch(`${service.url}/${made}?${made}`, { headers: { [`x-${made}`]: made, 'x-request-id': made } });
        await fetch(`${service.url}/auth/${made}`);
        await sendRaw(service.url, `${made} / HTTP/1.1\r\n\r\n`);
      }
      return seriesOf();
    };
    // From the second time on, failed credentials are answered 429.
    await attack('a');
    assert.equal(await attack('b'), await attack('c'));
  });

  it('count the keys of the store by status, and say when the next one expires', async () => {
    await test.keys.create({ name: 'Live', roles: ['GUEST'], expiresIn: '1h' }, OPERATOR);
    const { apiKey: key } = await test.keys.create({ name: 'Off', roles: ['GUEST'] }, OPERATOR);
    await test.keys.setEnabled(key.id, false, OPERATOR);
    const families = await scrape();
    const keys = (status: string) => valueOf(families, 'svc_api_keys', { status });
    assert.deepEqual([keys('active'), keys('disabled'), keys('expired')], [1, 1, 0]);
    const next = valueOf(families, 'svc_api_next_key_expiry_timestamp_seconds');
    assert.equal(next, test.time.now / 1000 + 3600);
  });

  it('are served at only one address, also while scrapes do not end', async () => {
    const { origin } = new URL(server.url);
    assert.equal((await fetch(`${origin}/`)).status, 404);
    assert.equal((await fetch(`${origin}/graphql`, { method: 'POST' })).status, 404);
    assert.equal((await fetch(server.url, { method: 'POST', body: 'x' })).status, 405);
    assert.equal((await fetch(server.url, { method: 'HEAD' })).status, 200);
    assert.equal((await fetch(`${service.url}/metrics`)).status, 404);
    const scrapes = await Promise.all(Array.from({ length: 20 }, () => scrape()));
    assert.equal(scrapes.length, 20);
    const silent = connect(Number(new URL(server.url).port), '127.0.0.1');
    silent.on('error', () => {});
    silent.write('GET /metrics HTTP/1.1\r\nHost: a\r\n');
    assert.ok((await scrape()).size > 10);
    await server.stop();
    silent.destroy();
  });

  it('say that they could not be collected', async () => {
    const scrapeFails = () => Promise.reject(new Error('no'));
    const failing = await serveMetrics(
      { host: '127.0.0.1', port: 0 },
      { contentType: 'text/plain', scrape: scrapeFails },
    );
    assert.equal((await fetch(failing.url)).status, 500);
    await failing.stop();
    await assert.rejects(
      serveMetrics(
        { host: '127.0.0.1', port: Number(new URL(server.url).port) },
        { contentType: '', scrape: scrapeFails },
      ),
      {
        code: 'LISTEN_FAILED',
        message:
          /^The server cannot start: port \d+ is taken\. Choose another with --metrics-port, or 0 for a free one\.$/,
      },
    );
    await assert.rejects(
      serveMetrics({ host: 'not a host', port: 0 }, { contentType: '', scrape: scrapeFails }),
      /there is no host "not a host"\. Choose another with server\.metricsHost in svc-api\.yaml, or --metrics-host\.$/,
    );
  });

  it('of several processes are combined by their kind', async () => {
    const { key: secret } = await test.keys.create({ name: 'Key', roles: ['ADMIN'] }, OPERATOR);
    await query(service.url, secret, '{ me { name } }');
    await scrapeAtRest();
    const one = JSON.parse(JSON.stringify(await metrics.collect(true))) as Awaited<ReturnType<Metrics['collect']>>;
    const other = await metrics.collect(false);
    const gone = (await aggregated([one]).getMetricsAsJSON()) as unknown as Sample[];
    const families = parseExposition(await aggregated([gone, other]).metrics());
    assert.equal(valueOf(families, 'svc_api_requests_total', { endpoint: 'graphql', code: '200' }), 2);
    assert.equal(valueOf(families, 'svc_api_request_duration_seconds_bucket', { endpoint: 'graphql', le: '+Inf' }), 2);
    assert.equal(valueOf(families, 'svc_api_keys', { status: 'active' }), 1, 'which one process has counted for all');
    assert.equal(valueOf(families, 'svc_api_build_info'), 1);
  });
});

describe('a count of keys', () => {
  it('is not repeated within a minute, and missing while the store does not answer', async () => {
    let asked = 0;
    const counts = { counts: { ACTIVE: 1, DISABLED: 0, EXPIRED: 0 }, nextExpiry: null };
    const counter = new KeyCounter(async () => {
      asked += 1;
      return counts;
    });
    const answers = await Promise.all(Array.from({ length: 10 }, () => counter.latest()));
    assert.deepEqual([new Set(answers), asked], [new Set([counts]), 1]);
    assert.equal(await counter.latest(), counts);
    assert.equal(asked, 1);
    const failing = new KeyCounter(() => Promise.reject(new Error('no')));
    assert.equal(await failing.latest(), undefined);
  });
});
