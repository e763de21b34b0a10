import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { parse, stringify } from 'yaml';
import { testCli } from '../../support/cli.ts';
import { freePort } from '../../support/port.ts';
import { cleanEnv, ROOT, startCli } from '../../support/process.ts';
import { query } from '../../support/server.ts';
import { needsPrograms } from '../../support/skip.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';
import { Receiver, stopReceivers } from '../../support/webhook.ts';

const GRAFANA = join(ROOT, 'examples/grafana');

/** A timeout in milliseconds that even a busy machine does not reach. */
const WAIT_MS = 300_000;

interface Answer {
  status: string;
  error?: string;
  data: { result: { value: [at: number, value: string] }[] };
}

interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
}

/** Runs promtool and returns its output. */
async function promtool(args: readonly string[], input = ''): Promise<{ code: number | null; said: string }> {
  const child = spawn('promtool', args, { cwd: ROOT });
  child.stdin.end(input);
  const [said, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as number | null, said: said + errors };
}

describe("Prometheus' own programs", () => {
  const stops: (() => unknown)[] = [];
  before(function () {
    needsPrograms(this, 'promtool', 'prometheus');
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  /** Starts `serve`, and returns its addresses. */
  async function serve(...args: string[]) {
    const cli = testCli();
    const { key: secret } = await cli.given('CI', { roles: ['ADMIN'], expiresIn: '7d' });
    const receiver = await Receiver.start();
    stops.push(stopReceivers);
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, `notices: { url: "${receiver.url}" }\n`);
    const places = ['--database', cli.database, '--config', config, '--port', '0', '--metrics-port', '0'];
    const child = startCli(['serve', ...places, ...args], {
      env: cleanEnv({ LOG_LEVEL: 'info', SVC_API_NOTICES_SECRET: receiver.secret }),
    });
    const ended = once(child, 'exit');
    stops.push(() => child.kill() && ended);
    let metrics: string | undefined;
    createInterface({ input: child.stderr! }).on('line', (line) => {
      metrics ??= (JSON.parse(line) as { metrics?: string }).metrics;
    });
    let printed = '';
    child.stdout!.on('data', (chunk) => (printed += String(chunk)));
    await until(() => metrics !== undefined && printed.includes('\n'));
    return { url: printed.trim().slice('Listening on '.length), metrics: metrics!, secret };
  }

  it('find nothing wrong with metrics, of one process or of several, before and after requests', async () => {
    for (const args of [[], ['--workers', '2']]) {
      const { url, metrics, secret } = await serve(...args);
      for (let time = 0; time < 2; time += 1) {
        const scraped = await (await fetch(metrics)).text();
        assert.deepEqual(await promtool(['check', 'metrics'], scraped), { code: 0, said: '' });
        await query(url, secret, '{ me { name } }');
        await query(url, 'nonsense', '{ me { name } }');
      }
    }
  });

  it('accept the examples, whose alerts fire when they should', async () => {
    for (const args of [
      ['check', 'rules', join(GRAFANA, 'alerts.yml')],
      ['check', 'config', join(GRAFANA, 'prometheus.yml')],
      ['test', 'rules', 'test/fixtures/alerts.test.yml'],
    ]) {
      const { code, said } = await promtool(args);
      assert.equal(code, 0, said);
      assert.match(said, /SUCCESS/);
    }
    const { groups } = parse(readFileSync(join(GRAFANA, 'alerts.yml'), 'utf8')) as {
      groups: { rules: { alert: string }[] }[];
    };
    const tested = readFileSync(join(ROOT, 'test/fixtures/alerts.test.yml'), 'utf8');
    for (const { alert } of groups.flatMap(({ rules }) => rules)) assert.ok(tested.includes(alert), alert);
  });

  it('scrape a server, and each panel of the dashboard has something to show', async () => {
    const { url, metrics, secret } = await serve();
    const folder = tempFolder();
    const config = parse(readFileSync(join(GRAFANA, 'prometheus.yml'), 'utf8')) as {
      scrape_configs: { scrape_interval: string; static_configs: { targets: string[] }[] }[];
    };
    const [scraped] = config.scrape_configs;
    const { host } = new URL(metrics);
    Object.assign(scraped!, { scrape_interval: '1s', static_configs: [{ targets: [host] }] });
    const file = join(folder, 'prometheus.yml');
    writeFileSync(file, stringify({ scrape_configs: [scraped], rule_files: [join(GRAFANA, 'alerts.yml')] }));
    const address = `127.0.0.1:${await freePort()}`;
    const data = `--storage.tsdb.path=${join(folder, 'data')}`;
    const prometheus = spawn('prometheus', [`--config.file=${file}`, data, `--web.listen-address=${address}`], {
      stdio: 'ignore',
    });
    const ended = once(prometheus, 'exit');
    stops.push(() => prometheus.kill() && ended);
    const ask = async (path: string) => {
      const answer = await fetch(`http://${address}/api/v1/${path}`).catch(() => undefined);
      // It answers 503 until it is ready.
      if (!answer || answer.status === 503) return undefined;
      return (await answer.json()) as Answer;
    };
    const rows = async (expr: string) => {
      const answer = await ask(`query?query=${encodeURIComponent(expr)}`);
      assert.notEqual(answer?.status, 'error', `${expr}: ${answer?.error}`);
      return answer?.data.result.filter(({ value }) => value[1] !== 'NaN').length ?? 0;
    };
    await until(async () => (await rows('up == 1')) === 1);
    const { panels } = JSON.parse(readFileSync(join(GRAFANA, 'svc-api.json'), 'utf8')) as Dashboard;
    // Guards have upstreams and edges have an origin; without edges, nothing waits for them.
    const wanted = panels
      .flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr })))
      .filter(({ expr }) => !/svc_api_(?:upstream|edge|feed_changes_waited)_/.test(expr));
    assert.ok(wanted.length > 20);
    const filled = ({ expr }: { expr: string }) =>
      expr.replaceAll('$job', 'svc-api.*').replaceAll('$instance', '.*').replaceAll('$__rate_interval', '30s');
    let empty = wanted;
    const deadline = Date.now() + WAIT_MS;
    await until(async () => {
      await query(url, secret, '{ me { name } }');
      await query(url, 'nonsense', '{ me { name } }');
      const counts = await Promise.all(empty.map((one) => rows(filled(one))));
      empty = empty.filter((_, index) => counts[index] === 0);
      return empty.length === 0 || Date.now() > deadline;
    });
    assert.deepEqual(empty, []);
    const rules = (await (await fetch(`http://${address}/api/v1/rules`)).json()) as {
      data: { groups: { rules: { name: string; health: string; state: string }[] }[] };
    };
    for (const { name, health, state } of rules.data.groups.flatMap((group) => group.rules))
      // On a busy machine, the alert for slow answers can be pending.
      assert.ok(health !== 'err' && state !== 'firing', `${name}: ${health}, ${state}`);
  });
});
