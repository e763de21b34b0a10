import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { testCli } from '../../support/cli.ts';
import { type Family, parseExposition, valueOf } from '../../support/exposition.ts';
import { cleanEnv, finished, ROOT, startCli } from '../../support/process.ts';
import { runParts } from '../../support/run-parts.ts';
import { startOtlpReceiver } from '../../support/otlp.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';
import { Receiver, stopReceivers } from '../../support/webhook.ts';

const HOOK = pathToFileURL(join(ROOT, 'test/support/missing-child.ts')).href;

type Line = Record<string, unknown> & { pid: number; msg: string };

/** Starts `serve`, and waits until this many processes listen. */
async function start(
  args: readonly string[],
  { processes = 1, env = {} }: { processes?: number; env?: NodeJS.ProcessEnv } = {},
) {
  const cli = testCli();
  const { key } = await cli.given('CI');
  const child = startCli(['serve', '--database', cli.database, '--port', '0', ...args], {
    env: cleanEnv({ LOG_LEVEL: 'info', ...env }),
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  const lines: Line[] = [];
  createInterface({ input: child.stderr! }).on('line', (line) => lines.push(JSON.parse(line) as Line));
  let printed = '';
  child.stdout!.on('data', (text: Buffer) => (printed += String(text)));
  const listening = () => lines.filter(({ msg }) => msg === 'listening');
  await until(() => listening().length === processes && printed.includes('\n'));
  const url = printed.trim().slice('Listening on '.length);
  const metrics = String(lines.find((line) => line['metrics'] !== undefined)?.['metrics']);
  const ask = async (): Promise<number> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' };
    return (await fetch(`${url}/graphql`, { method: 'POST', headers, body: '{"query":"{ online }"}' })).status;
  };
  const scrape = async () => parseExposition(await (await fetch(metrics)).text());
  const stop = async () => {
    child.kill('SIGTERM');
    return (await ended)[0];
  };
  const create = (name: string) => cli.given(name);
  return { child, lines, listening, url, metrics, ask, create, scrape, stop };
}

const answered = (families: Map<string, Family>) =>
  valueOf(families, 'svc_api_requests_total', { endpoint: 'graphql', code: '200' }) ?? 0;

describe('a setting of serve', () => {
  it('comes from the configuration, a variable before that, and a flag before both', async () => {
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, 'server: { keepAlive: 70, metricsHost: 127.0.0.2 }\n', { mode: 0o600 });
    const place = ['--config', config, '--metrics-port', '0'];
    const variables = { SVC_API_KEEP_ALIVE: '80', SVC_API_METRICS_HOST: '127.0.0.3' };
    for (const [args, env, seconds, host] of [
      [[], {}, 70, '127.0.0.2'],
      [[], variables, 80, '127.0.0.3'],
      [['--keep-alive', '90', '--metrics-host', '127.0.0.4'], variables, 90, '127.0.0.4'],
    ] as const) {
      const server = await start([...place, ...args], { env });
      const { headers } = await fetch(`${server.url}/healthz`);
      assert.deepEqual([headers.get('keep-alive'), new URL(server.metrics).hostname], [`timeout=${seconds}`, host]);
      assert.equal(await server.stop(), 0);
    }
    const several = await start([...place, '--workers', '2'], { processes: 2 });
    await until(async () => (await fetch(`${several.url}/healthz`)).headers.get('keep-alive') === 'timeout=70');
    assert.equal(new URL(several.metrics).hostname, '127.0.0.2');
    assert.equal(await several.stop(), 0);
  });
});

describe('what operators see of serve', () => {
  it('is the whole of all workers, which only grows, also when a worker is killed while it is asked', async () => {
    const server = await start(['--workers', '2', '--metrics-port', '0'], { processes: 2 });
    for (let time = 0; time < 20; time += 1) assert.equal(await server.ask(), 200);
    await until(async () => answered(await server.scrape()) === 20);
    const before = await server.scrape();
    assert.equal(valueOf(before, 'svc_api_workers'), 2);
    const startedAgo = Date.now() / 1000 - valueOf(before, 'process_start_time_seconds')!;
    assert.ok(startedAgo > 0 && startedAgo < 600, `${startedAgo}`);
    assert.equal(valueOf(before, 'svc_api_keys', { status: 'active' }), 1);
    const [{ pid: victim }] = server.listening() as [Line];
    // Its answer is in transit, or never comes.
    process.kill(victim, 'SIGSTOP');
    const scraping = Promise.all([server.scrape(), server.scrape()]);
    process.kill(victim, 'SIGKILL');
    for (const families of await scraping) assert.equal(answered(families), 20);
    await until(() => server.listening().length === 3);
    assert.equal(await server.ask(), 200);
    await until(async () => answered(await server.scrape()) === 21);
    assert.equal(await server.stop(), 0);
    await assert.rejects(fetch(server.metrics));
  });

  it('is how notices are doing, of all workers, once svc-api.yaml names a webhook; nothing of them before', async () => {
    const receiver = await Receiver.start();
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, 'roles: {}\n');
    const env = { SVC_API_NOTICES_SECRET: receiver.secret };
    const args = ['--workers', '2', '--metrics-port', '0', '--config', config];
    const server = await start(args, { processes: 2, env });
    assert.ok(![...(await server.scrape()).keys()].some((name) => name.includes('notice')));
    writeFileSync(config, `notices: { url: "${receiver.url}" }\n`);
    server.child.kill('SIGHUP');
    const found = async () => {
      const families = await server.scrape();
      return ['svc_api_notices_waiting', 'svc_api_notices_given_up_total', 'svc_api_notice_attempts_total'].map(
        (name) => valueOf(families, name, name.endsWith('attempts_total') ? { result: 'delivered' } : {}),
      );
    };
    await until(async () => (await found())[0] === 0);
    await server.create('Told');
    // The delivery is recorded a second later.
    await until(async () => isDeepStrictEqual(await found(), [0, 0, 1]));
    assert.equal(receiver.received.length, 1);
    writeFileSync(config, 'roles: {}\n');
    server.child.kill('SIGHUP');
    await until(async () => (await found())[0] === undefined);
    assert.deepEqual(await found(), [undefined, 0, 1]);
    assert.equal(await server.stop(), 0);
    await stopReceivers();
  });

  it('is a line for each request with --request-log, and no line without', async () => {
    const server = await start([], { env: { SVC_API_REQUEST_LOG: '1' } });
    await server.ask();
    await until(() => server.lines.some(({ msg }) => msg === 'request'));
    const line = server.lines.find(({ msg }) => msg === 'request')!;
    assert.deepEqual([line['level'], line['endpoint'], line['status']], [30, 'graphql', 200]);
    assert.equal(await server.stop(), 0);
  });

  it('keeps it neither from stopping while a scrape is open, nor from starting with a clear error', async () => {
    const server = await start(['--metrics-port', '0']);
    const { port } = new URL(server.metrics);
    const open = connect(Number(port), '127.0.0.1');
    await once(open, 'connect');
    open.write('GET /metrics HTTP/1.1\r\n');
    const taken = startCli(['serve', '--database', join(tempFolder(), 'keys'), '--port', '0', '--metrics-port', port], {
      env: cleanEnv(),
    });
    const { code, stderr } = await finished(taken);
    assert.equal(code, 1);
    assert.match(stderr, /port \d+ is taken\. Choose another with --metrics-port/);
    assert.equal(await server.stop(), 0);
    open.destroy();
  });

  it('does not even run unless enabled', async () => {
    const folder = tempFolder();
    const server = await start([], { env: { NODE_V8_COVERAGE: folder } });
    assert.equal(await server.ask(), 200);
    assert.equal(await server.stop(), 0);
    const parts = runParts(folder).join('\n');
    assert.match(parts, /\/hono\//);
    assert.doesNotMatch(parts, /telemetry|prom-client|opentelemetry/);
  });

  for (const processes of [1, 2])
    it(`ends soon if its spans are not received, by processes: ${processes}`, async () => {
      let attempts = 0;
      const receiver = createServer((_, outgoing) => {
        attempts += 1;
        outgoing.writeHead(503).end();
      }).listen(0, '127.0.0.1');
      await once(receiver, 'listening');
      const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
      const env = {
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_EXPORTER_OTLP_TIMEOUT: '60000',
        // The batch delay is so long that spans are only sent at the stop.
        OTEL_BSP_SCHEDULE_DELAY: '600000',
      };
      const server = await start(['--workers', `${processes}`], { env, processes });
      for (let count = 0; count < 8; count += 1) assert.equal(await server.ask(), 200);
      assert.equal(await server.stop(), 0);
      receiver.close();
      // OpenTelemetry itself would retry five times.
      assert.ok(attempts > 0 && attempts < 6 * processes, `${attempts} attempts`);
    });

  it('is traced as the variables of OpenTelemetry say, up to the last request', async () => {
    const receiver = await startOtlpReceiver();
    const server = await start([], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } });
    assert.equal(await server.ask(), 200);
    assert.equal(await server.stop(), 0);
    const span = receiver.spans.find(({ kind }) => kind === 2);
    assert.deepEqual([span!.name, span!.resource['service.name']], ['POST /graphql', 'svc-api']);
    receiver.stop();
  });

  it('says what to install for that, and serves all the same', async () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      MISSING_PACKAGES: '@opentelemetry/sdk-trace',
      NODE_OPTIONS: `--import=${HOOK}`,
    };
    const server = await start([], { env });
    const line = server.lines.find(({ msg }) => msg.startsWith('requests are not traced'))!;
    assert.equal(line['level'], 50);
    assert.match(String(line['install']), /^npm install @opentelemetry\/api .*@opentelemetry\/sdk-trace /);
    assert.equal(await server.ask(), 200);
    assert.equal(await server.stop(), 0);
  });
});
