import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createApp } from '../../src/service/create-app.ts';
import { listen } from '../../src/http/listen.ts';
import { Metrics } from '../../src/features/telemetry/metrics.ts';
import { edgeMetrics } from '../../src/features/edge/metrics.ts';
import { feedMetrics } from '../../src/features/edges/metrics.ts';
import { noticeMetrics } from '../../src/features/notices/metrics.ts';
import { type Family, parseExposition } from '../support/exposition.ts';
import { startGuarded } from '../features/guard/support/guard.ts';
import { openTestKeys } from '../support/keys.ts';
import { ROOT } from '../support/process.ts';
import { query } from '../support/server.ts';

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { h: number; w: number; x: number; y: number };
  datasource: { uid: string };
  targets: { refId: string; expr: string }[];
}
interface Dashboard {
  title: string;
  uid: string;
  schemaVersion: number;
  panels: Panel[];
  templating: { list: { name: string; query: unknown }[] };
}

const read = (file: string) => readFileSync(join(ROOT, 'examples/grafana', file), 'utf8');
const dashboard = JSON.parse(read('svc-api.json')) as Dashboard;

describe('examples/grafana', () => {
  let families: Map<string, Family>;
  before(async () => {
    const metrics = new Metrics();
    const { keys, store } = await openTestKeys({ asServer: true, timer: metrics.storeTimer });
    metrics.measure(keys);
    const counts = { delivered: 1, failed: 0, givenUp: 0 };
    metrics.add('notices', noticeMetrics({ counts, countWaiting: async () => 0 }));
    const state = { lagSeconds: 0, leaseSeconds: 1, keys: 1, tableBytes: 100 };
    metrics.add(
      'edge',
      edgeMetrics(() => state),
    );
    metrics.addOver('edges', feedMetrics);
    const server = await listen({
      app: await createApp({ keys }),
      host: '127.0.0.1',
      port: 0,
      watchers: [metrics.requests],
    });
    const { key: secret } = await keys.create({ name: 'Key', roles: ['GUEST'], expiresIn: '1d' }, OPERATOR);
    await query(server.url, secret, '{ me { name } }');
    await server.stop();
    const guarded = await startGuarded((_, outgoing) => outgoing.end(), {
      watchers: [metrics.requests],
      named: 'wiki',
    });
    await fetch(guarded.url, { headers: { authorization: `Bearer ${guarded.secret}` } });
    await guarded.stop();
    families = parseExposition(await metrics.text());
    await store.close();
  });

  /** Each metric in an expression, with the labels that filter or group it. */
  const used = (expr: string) => {
    const names = Array.from(expr.matchAll(/\b(?:svc_api|process|nodejs)_[a-z0-9_]+/g), ([name]) => name);
    const grouped = Array.from(expr.matchAll(/\bby \(([^)]*)\)/g), ([, list]) => list!.split(/,\s*/)).flat();
    const selected = Array.from(expr.matchAll(/(\w+)=~?"/g), ([, label]) => label!);
    return { names, labels: [...grouped, ...selected].filter((label) => !['job', 'instance'].includes(label)) };
  };
  const check = (expr: string, title: string) => {
    const { names, labels } = used(expr);
    assert.ok(names.length > 0, title);
    for (const name of names) {
      const family = families.get(name) ?? families.get(name.replace(/_(?:bucket|sum|count)$/, ''));
      assert.ok(family, `${title}: ${name}`);
      if (/_(?:total|bucket|count|sum)$/.test(name)) assert.match(expr, /rate\(/, title);
      const known = new Set(family.samples.flatMap((sample) => Object.keys(sample.labels)));
      for (const label of labels) assert.ok(known.has(label), `${title}: ${name} has no label ${label}`);
    }
  };

  it('has a dashboard of metrics that there are, with what Grafana needs', () => {
    assert.ok(dashboard.title !== '' && dashboard.uid !== '' && dashboard.schemaVersion >= 36);
    const variables = new Set(dashboard.templating.list.map(({ name }) => name));
    assert.deepEqual(variables, new Set(['datasource', 'job', 'instance']));
    assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
    const cells = new Set<string>();
    for (const { title, type, gridPos, datasource, targets } of dashboard.panels) {
      assert.ok(['stat', 'timeseries'].includes(type) && title !== '');
      assert.equal(datasource.uid, '${datasource}');
      assert.ok(gridPos.x + gridPos.w <= 24, title);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1)
        for (let row = gridPos.y; row < gridPos.y + gridPos.h; row += 1) {
          assert.ok(!cells.has(`${x} ${row}`), `${title} covers another panel`);
          cells.add(`${x} ${row}`);
        }
      assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length);
      for (const { expr } of targets) {
        check(expr, title);
        assert.equal(expr.split('(').length, expr.split(')').length, title);
        for (const [, variable] of expr.matchAll(/"\$(\w+)"/g)) assert.ok(variables.has(variable!), title);
      }
    }
    for (const name of families.keys())
      if (name.startsWith('svc_api_') && name !== 'svc_api_build_info')
        assert.ok(read('svc-api.json').includes(name), `${name} is on the dashboard`);
  });

  it('has alerts of metrics that there are, and what scrapes them', () => {
    const { groups } = parse(read('alerts.yml')) as { groups: { rules: { alert: string; expr: string }[] }[] };
    for (const { alert, expr } of groups.flatMap(({ rules }) => rules)) if (!expr.startsWith('up{')) check(expr, alert);
    const { scrape_configs: scraped } = parse(read('prometheus.yml')) as { scrape_configs: { job_name: string }[] };
    assert.deepEqual(
      scraped.map((each) => each.job_name),
      ['svc-api', 'svc-api-guard'],
    );
  });
});
