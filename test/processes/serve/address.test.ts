import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request as requestPlainly } from 'node:http';
import { request, type RequestOptions } from 'node:https';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { readAddress, readCertificateFiles, readOptions } from '../../../src/cli/serve/options.ts';
import { type Pair, pairOf, writePair } from '../../support/certificates.ts';
import { testCli } from '../../support/cli.ts';
import { finished, startCli } from '../../support/process.ts';
import { tempFolder } from '../../support/temp.ts';

const NONE = {
  host: undefined,
  port: undefined,
  socket: undefined,
  'tls-cert': undefined,
  'tls-key': undefined,
  'keep-alive': undefined,
  workers: undefined,
  'request-log': false,
  'metrics-host': undefined,
  'metrics-port': undefined,
};

describe('where serve listens', () => {
  const addressOf = (flags: Record<string, string>, env: NodeJS.ProcessEnv = {}) =>
    readAddress({ ...NONE, ...flags }, env, 4000);

  it('is what the flags say, before what the environment says, before loopback', () => {
    const env = { SVC_API_HOST: '::1', SVC_API_PORT: '5000' };
    const rows: [flags: Record<string, string>, env: NodeJS.ProcessEnv, address: object][] = [
      [{}, {}, { host: '127.0.0.1', port: 4000 }],
      [{}, { SVC_API_HOST: '', SVC_API_PORT: '', SVC_API_SOCKET: '' }, { host: '127.0.0.1', port: 4000 }],
      [{}, { SVC_API_HOST: ' ', SVC_API_PORT: '\t', SVC_API_SOCKET: ' ' }, { host: '127.0.0.1', port: 4000 }],
      [{}, env, { host: '::1', port: 5000 }],
      [{ port: '0' }, env, { host: '::1', port: 0 }],
      [{ host: '0.0.0.0' }, env, { host: '0.0.0.0', port: 5000 }],
      [{ host: '[::1]' }, {}, { host: '::1', port: 4000 }],
      [{ host: '[2001:db8::1]', port: '1' }, {}, { host: '2001:db8::1', port: 1 }],
      [{}, { SVC_API_SOCKET: '/a.sock' }, { socket: '/a.sock' }],
      [{ socket: 'b.sock' }, env, { socket: resolve('b.sock') }],
      [{ socket: '/b.sock' }, { SVC_API_SOCKET: '/a.sock' }, { socket: '/b.sock' }],
      [{ port: '1' }, { SVC_API_SOCKET: '/a.sock' }, { host: '127.0.0.1', port: 1 }],
    ];
    for (const [flags, variables, address] of rows)
      assert.deepEqual(addressOf(flags, variables), address, JSON.stringify([flags, variables]));
  });

  it('is a socket or a port, not both', () => {
    const both = (one: string, other: string) => ({
      code: 'USAGE',
      message: `${one} and ${other} cannot be used together. Pass one of them.`,
    });
    assert.throws(() => addressOf({ socket: '/a', host: '::1' }), both('--socket', '--host'));
    assert.throws(() => addressOf({ socket: '/a', port: '1' }), both('--socket', '--port'));
    const env = { SVC_API_SOCKET: '/a', SVC_API_PORT: '1' };
    assert.throws(() => addressOf({}, env), both('SVC_API_SOCKET', 'SVC_API_PORT'));
  });

  it('has a certificate with its key, by flags or environment, but not on a socket', () => {
    const filesOf = (flags: Record<string, string>, env: NodeJS.ProcessEnv = {}) =>
      readCertificateFiles({ ...NONE, ...flags }, env, addressOf(flags, env));
    assert.equal(filesOf({}), undefined);
    assert.deepEqual(filesOf({ 'tls-cert': '/c', 'tls-key': 'k' }), { cert: '/c', key: resolve('k') });
    const env = { SVC_API_TLS_CERT: '/c', SVC_API_TLS_KEY: '/k' };
    assert.deepEqual(filesOf({ 'tls-cert': '/d' }, env), { cert: '/d', key: '/k' });
    for (const [flags, variables, message] of [
      [{ 'tls-cert': '/c' }, {}, '--tls-cert is given without --tls-key. TLS needs a certificate and its key.'],
      [{ 'tls-key': '/k' }, {}, '--tls-key is given without --tls-cert. TLS needs a certificate and its key.'],
      [
        {},
        { SVC_API_TLS_KEY: '/k' },
        'SVC_API_TLS_KEY is given without --tls-cert. TLS needs a certificate and its key.',
      ],
      [{ 'tls-cert': ' ', 'tls-key': '/k' }, {}, '--tls-cert is empty. Give the path of a certificate in PEM.'],
      [
        { socket: '/a', 'tls-cert': '/c' },
        env,
        'TLS is not supported on a Unix socket. Leave out --tls-cert and SVC_API_TLS_KEY.',
      ],
    ] as const)
      assert.throws(() => filesOf(flags, variables), { code: 'USAGE', message });
  });

  it('keeps connections for as many seconds as the flag says, or the environment', () => {
    const keepAliveOf = (flag: string | undefined, env: NodeJS.ProcessEnv = {}) =>
      readOptions({ ...NONE, 'keep-alive': flag }, env, 4000).settings.keepAlive;
    assert.deepEqual(
      [keepAliveOf(undefined), keepAliveOf('90'), keepAliveOf(undefined, { SVC_API_KEEP_ALIVE: '120' })],
      [undefined, 90, 120],
    );
    assert.equal(keepAliveOf('90', { SVC_API_KEEP_ALIVE: 'x' }), 90);
    for (const wrong of ['0', '3601', '-1', '1.5', '1m', ''])
      assert.throws(() => keepAliveOf(wrong), {
        code: 'USAGE',
        message: `--keep-alive is "${wrong}". Give a number from 1 to 3600.`,
      });
    assert.throws(() => keepAliveOf(undefined, { SVC_API_KEEP_ALIVE: 'x' }), /^Error: SVC_API_KEEP_ALIVE is "x"\./);
  });

  it('shows operators what the flags say, or the environment', () => {
    const telemetryOf = (flags: Partial<typeof NONE> | Record<string, string | boolean>, env: NodeJS.ProcessEnv = {}) =>
      readOptions({ ...NONE, ...flags }, env, 4000).telemetry;
    const metricsHostOf = (flags: Record<string, string>, env: NodeJS.ProcessEnv) =>
      readOptions({ ...NONE, ...flags }, env, 4000).settings.metricsHost;
    assert.deepEqual(telemetryOf({}), { requestLog: false, metricsPort: undefined, traces: false });
    assert.deepEqual(telemetryOf({ 'request-log': true, 'metrics-port': '0' }), {
      requestLog: true,
      metricsPort: 0,
      traces: false,
    });
    const env = { SVC_API_REQUEST_LOG: '1', SVC_API_METRICS_PORT: '9464', SVC_API_METRICS_HOST: '[::1]' };
    assert.deepEqual(telemetryOf({}, env), {
      requestLog: true,
      metricsPort: 9464,
      traces: false,
    });
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
    const tracing = [
      endpoint,
      { ...endpoint, OTEL_SDK_DISABLED: 'true' },
      { ...endpoint, OTEL_TRACES_EXPORTER: 'none' },
    ];
    assert.deepEqual(
      tracing.map((variables) => telemetryOf({}, variables).traces),
      [true, false, false],
    );
    assert.deepEqual([metricsHostOf({ 'metrics-host': '::' }, env), metricsHostOf({}, env)], ['::', '[::1]']);
    assert.equal(telemetryOf({}, { SVC_API_METRICS_HOST: '::1', SVC_API_REQUEST_LOG: '0' }).metricsPort, undefined);
    for (const [flags, variables, message] of [
      [{ 'metrics-port': '70000' }, {}, /^Error: --metrics-port is "70000", which is not a port\./],
      [{ 'metrics-host': '::1' }, {}, /^Error: --metrics-host is given without --metrics-port\.$/],
      [{ 'metrics-host': ' ', 'metrics-port': '1' }, {}, /^Error: --metrics-host is empty\./],
      [{}, { SVC_API_METRICS_PORT: 'x' }, /^Error: SVC_API_METRICS_PORT is "x", which is not a port\./],
      [
        {},
        { SVC_API_REQUEST_LOG: 'yes' },
        /^Error: SVC_API_REQUEST_LOG is "yes"\. Set it to 1 for on, or to 0 for off\.$/,
      ],
    ] as const)
      assert.throws(() => telemetryOf(flags, variables), message);
  });
});

describe('serve', () => {
  /** Starts the server, and waits until all workers listen. */
  async function start(args: readonly string[], workers = 1) {
    const { database } = testCli();
    const child = startCli(['serve', ...args], { env: { SVC_API_DATABASE: database, LOG_LEVEL: 'info' } });
    const end = finished(child);
    const logged: { level: number; msg: string; pid: number }[] = [];
    const listening = new Promise<void>((isThere) => {
      createInterface({ input: child.stderr! }).on('line', (line) => {
        logged.push(JSON.parse(line) as (typeof logged)[number]);
        if (logged.filter(({ msg }) => msg === 'listening').length === workers) isThere();
      });
    });
    const ended = end.then(({ stderr }) => assert.fail(`It ended: ${stderr}`));
    const printed = (once(child.stdout!, 'data') as Promise<[string]>).then(([text]) => text);
    const [text] = await Promise.race([Promise.all([printed, listening]), ended]);
    const stop = async () => {
      child.kill('SIGTERM');
      return (await end).code;
    };
    return { url: text.slice('Listening on '.length).trim(), logged, stop };
  }
  const healthOf = async (ask: typeof request, options: RequestOptions) => {
    const sent = ask({ path: '/healthz', agent: false, ...options }).end();
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    return reply.resume();
  };
  const warnings = (logged: readonly { level: number; msg: string }[]) =>
    logged.filter(({ level, msg }) => level === 40 && msg.startsWith('keys cross the network without encryption'));

  /** A configuration with a certificate. */
  const configWith = (pair: Pair) => {
    const folder = tempFolder();
    writePair(pair, folder);
    const file = join(folder, 'svc-api.yaml');
    const tls = 'tls: { cert: cert.pem, key: key.pem }';
    writeFileSync(file, `${tls}\ncors: { origins: ["https://app.example.org"] }\nintrospection: off\n`);
    return file;
  };

  it('speaks TLS in all workers, as svc-api.yaml says, and warns of no clear text then', async () => {
    const pair = pairOf('first');
    const args = ['--host', '::', '--port', '0', '--config', configWith(pair), '--workers', '2'];
    const { url, logged, stop } = await start(args, 2);
    assert.match(url, /^https:\/\/\[::\]:\d+$/);
    const { port } = new URL(url);
    const headers = { origin: 'https://app.example.org' };
    for (const host of ['127.0.0.1', '::1', '127.0.0.1', '::1']) {
      const reply = await healthOf(request, { host, port, servername: 'localhost', ca: pair.cert, headers });
      assert.deepEqual([reply.statusCode, reply.headers['access-control-allow-origin']], [200, headers.origin]);
    }
    assert.deepEqual(warnings(logged), []);
    assert.equal(await stop(), 0);
  });

  it('speaks TLS with the certificate of the flags, whatever svc-api.yaml says', async () => {
    const pair = pairOf('other');
    const { cert, key } = writePair(pair);
    const config = configWith(pairOf('first'));
    const { url, stop } = await start(['--port', '0', '--config', config, '--tls-cert', cert, '--tls-key', key]);
    const { hostname: host, port } = new URL(url);
    const { statusCode } = await healthOf(request, { host, port, servername: 'localhost', ca: pair.cert });
    assert.equal(statusCode, 200);
    assert.equal(await stop(), 0);
  });

  it('warns, once, of plain HTTP on another address than loopback', async () => {
    const { logged, stop } = await start(['--host', '0.0.0.0', '--port', '0', '--workers', '2'], 2);
    assert.equal(warnings(logged).length, 1);
    assert.equal(await stop(), 0);
  });

  it('listens on a Unix socket in all workers, and removes it; their own files are under no other mask', async () => {
    const socketPath = join(tempFolder(), 'api.sock');
    const args = ['--socket', socketPath, '--workers', '2', '--config', configWith(pairOf('first'))];
    const { url, logged, stop } = await start(args, 2);
    assert.equal(url, `unix:${socketPath}`);
    assert.equal(lstatSync(socketPath).mode & 0o777, 0o660);
    const maskOf = (pid: number | string) => /^Umask:.*$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![0];
    const pids = logged.filter(({ msg }) => msg === 'listening').map(({ pid }) => pid);
    assert.deepEqual(pids.map(maskOf), [maskOf('self'), maskOf('self')]);
    for (let time = 0; time < 4; time += 1)
      assert.equal((await healthOf(requestPlainly, { socketPath })).statusCode, 200);
    assert.equal(await stop(), 0);
    assert.equal(existsSync(socketPath), false);
  });

  it('says which file keeps it from TLS, once', async () => {
    const { cert } = writePair(pairOf('first'));
    const other = writePair(pairOf('other'));
    const args = ['serve', '--port', '0', '--tls-cert', cert, '--tls-key', other.key, '--workers', '2'];
    const { code, stderr } = await testCli().runProcess(args, { env: { LOG_LEVEL: 'error' } });
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^Error: For TLS, \S+key\.pem is not the key of the certificate in \S+cert\.pem\.\nCode: TLS_INVALID\n/,
    );
  });
});
