import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type TestCli, testCli } from '../../support/cli.ts';
import { Visitor } from '../../features/console/support/console.ts';
import { errorText } from '../../support/errors.ts';
import { openTestKeys } from '../../support/keys.ts';
import { type Finished, finished, startCli } from '../../support/process.ts';
import { query } from '../../support/server.ts';
import { until } from '../../support/until.ts';

interface Serving {
  url: string;
  child: ChildProcess;
  end: Promise<Finished>;
}

describe('serve', () => {
  const started: ChildProcess[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
  });

  /** Starts a server and waits for its address. */
  async function serve(
    cli: TestCli,
    args: readonly string[] = ['--port', '0'],
    env: NodeJS.ProcessEnv = {},
  ): Promise<Serving> {
    const child = startCli(['serve', ...args], { env: { SVC_API_DATABASE: cli.database, ...env } });
    started.push(child);
    const end = finished(child);
    const first = once(child.stdout!, 'data') as Promise<[string]>;
    const line = await Promise.race([
      first.then(([text]) => text),
      end.then(({ stderr }) => assert.fail(`It ended: ${stderr}`)),
    ]);
    const url = /^Listening on (http:\S+)\n$/.exec(line)?.[1];
    assert.ok(url, `Not an address: ${line}`);
    return { url, child, end };
  }

  it('prints its address, answers there, and ends with 0 at SIGTERM', async () => {
    const { url, child, end } = await serve(testCli());
    assert.match(url, /^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
    assert.equal((await fetch(`${url}/healthz`)).status, 200);
    assert.equal((await query(url, 'svc_none', '{ me { name } }')).status, 401);
    child.kill('SIGTERM');
    const { stdout, stderr, code } = await end;
    assert.deepEqual([stdout, code], [`Listening on ${url}\n`, 0]);
    const messages = stderr
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { msg: string }).msg);
    assert.deepEqual(
      [messages[0], messages[1], messages.at(-1)],
      ['created a new key store, which has no keys yet', 'listening', 'stopping'],
    );
  });

  it('lets a request in flight finish after SIGINT, and accepts no other', async () => {
    const cli = testCli();
    const { key } = await cli.given('Reader', { roles: ['ADMIN'] });
    const { url, child, end } = await serve(cli);
    const request = await half(url, key);
    child.kill('SIGINT');
    await refused(url);
    const answer = once(request.socket, 'data') as Promise<[Buffer]>;
    request.socket.write(request.rest);
    assert.match((await answer)[0].toString(), /^HTTP\/1\.1 200 OK[^]*"me":\{"name":"Reader"\}/);
    request.socket.end();
    const { code, signal } = await end;
    assert.deepEqual([code, signal], [0, null]);
  });

  it('ends at once at a second signal, while a request is still in flight', async () => {
    const cli = testCli();
    const { key } = await cli.given('Reader');
    for (const [second, exit] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const { url, child, end } = await serve(cli);
      const { socket } = await half(url, key);
      socket.on('error', () => {}).on('data', assert.fail);
      child.kill('SIGTERM');
      await refused(url);
      child.kill(second);
      // The exit code is 0 if requests have finished, or were cut off after 10 seconds.
      assert.equal((await end).code, exit);
    }
  });

  it('accepts a key that the CLI creates meanwhile, and refuses it from the next request on once the CLI deletes it', async () => {
    const cli = testCli();
    const { url } = await serve(cli);
    const { key, name } = await cli.given('Reader');
    for (let request = 0; request < 3; request += 1) {
      const { status, body } = await query(url, key, '{ me { name } }');
      assert.deepEqual([status, body], [200, { data: { me: { name } } }]);
    }
    assert.equal((await cli.run(['apikey', '--delete', '--name', name])).code, 0);
    const refusal = await query(url, key, '{ me { name } }');
    assert.equal(refusal.status, 401);
    assert.match(refusal.headers.get('www-authenticate') ?? '', /error="invalid_token"/);

    const first = await cli.given('Deploy');
    assert.equal((await query(url, first.key, '{ online }')).status, 200);
    const second = await cli.create('Deploy', '--overwrite');
    assert.deepEqual(
      [(await query(url, first.key, '{ online }')).status, (await query(url, second.key, '{ online }')).status],
      [401, 200],
    );
  });

  it('takes host and port from SVC_API_HOST and SVC_API_PORT, and from the flags before these', async () => {
    const cli = testCli();
    const byEnv = await serve(cli, [], { SVC_API_HOST: '127.0.0.2', SVC_API_PORT: '0' });
    assert.match(byEnv.url, /^http:\/\/127\.0\.0\.2:\d+$/);
    const { port } = new URL(byEnv.url);
    const env = { SVC_API_HOST: '127.0.0.2', SVC_API_PORT: port, LOG_LEVEL: 'silent' };
    const [taken, byFlag] = await Promise.all([
      cli.runProcess(['serve'], { env }),
      serve(cli, ['--host', '127.0.0.1', '--port', '0'], { SVC_API_HOST: 'nowhere', SVC_API_PORT: 'none' }),
    ]);
    assert.deepEqual(taken, {
      stdout: '',
      stderr: errorText(
        'LISTEN_FAILED',
        `The server cannot start: port ${port} is taken. Choose another with --port, or 0 for a free one.`,
      ),
      code: 1,
      signal: null,
    });
    assert.match(byFlag.url, /^http:\/\/127\.0\.0\.1:/);
  });

  it('does not start without the key of the audit log, and logs that it has another', async () => {
    const cli = testCli();
    const [path, other] = ['one', 'other'].map((name) => join(dirname(cli.database), name)) as [string, string];
    for (const file of [path, other]) writeFileSync(file, randomBytes(32), { mode: 0o600 });
    await cli.run(['apikey', 'create', '--name', 'A', '--roles', 'GUEST'], { env: { SVC_API_AUDIT_KEY: path } });
    const { stderr, code } = await cli.runProcess(['serve', '--port', '0'], { env: { LOG_LEVEL: 'silent' } });
    assert.deepEqual([stderr.split('. ')[0], code], ['Error: The audit log of this key store has a key', 1]);
    for (const [file, errors] of [
      [path, 0],
      [other, 1],
    ] as const) {
      const { child, end } = await serve(cli, ['--port', '0'], { SVC_API_AUDIT_KEY: file, LOG_LEVEL: 'error' });
      child.kill('SIGTERM');
      assert.equal((await end).stderr.match(/the newest entry of the audit log was not made/g)?.length ?? 0, errors);
    }
  });

  it('does not start with a clock that is behind the audit log, unless it is accepted', async () => {
    const { keys, store, database, time } = await openTestKeys();
    time.now = Date.now() + 7_200_000;
    await keys.create({ name: 'Later', roles: ['GUEST'] }, OPERATOR);
    await store.close();
    const cli = testCli(database);
    for (const args of [
      ['serve', '--port', '0'],
      ['serve', '--port', '0', '--workers', '2'],
      ['apikey', 'guard', 'http://127.0.0.1:9', '--port', '0', '--any-key'],
    ]) {
      const { code, stderr } = await finished(startCli(args, { env: { SVC_API_DATABASE: database } }));
      assert.equal(code, 1, stderr);
      assert.match(
        stderr,
        /^Error: The clock says \S+, but the newest entry of the audit log was written at \S+\. .*--accept-clock/m,
      );
    }
    const accepted = { LOG_LEVEL: 'warn', SVC_API_ACCEPT_CLOCK: '1' };
    for (const [args, env] of [
      [['--accept-clock'], { LOG_LEVEL: 'warn' }],
      [[], accepted],
    ] as const) {
      const { child, end } = await serve(cli, ['--port', '0', ...args], env);
      child.kill('SIGTERM');
      const { msg, behindMs } = JSON.parse((await end).stderr.split('\n', 1)[0]!) as { msg: string; behindMs: number };
      assert.equal(msg, 'the clock is behind the newest entry of the audit log');
      assert.ok(behindMs > 7_000_000 && behindMs <= 7_200_000, String(behindMs));
    }
  });

  it('answers a form of the console once, even if several workers get it, and logs no secret', async () => {
    const cli = testCli();
    const { key } = await cli.given('Ada', { roles: ['ADMIN'] });
    const { url, child, end } = await serve(cli, ['--port', '0', '--workers', '3'], { LOG_LEVEL: 'debug' });
    const visitor = new Visitor(url, { connection: 'close' });
    await visitor.signIn(key);
    await visitor.open('keys/new');
    await visitor.submit('keys/new', { name: 'Backup', permission: ['ME:READ_OWN'], step: 'preview' });
    const create = () => visitor.twin().submit('keys/new', { step: 'create' });
    const answers = await Promise.all(Array.from({ length: 8 }, create));
    for (let times = 0; times < 8; times += 1) answers.push(await create());
    const [secret, ...secrets] = answers.map(({ html }) => /value="(svc_\w+)"/.exec(html)?.[1]);
    assert.equal((await query(url, secret, '{ me { name } }')).status, 200);
    assert.deepEqual(new Set(secrets), new Set([secret]));
    child.kill('SIGTERM');
    assert.ok(!(await end).stderr.includes(secret!));
    const { stdout } = await cli.run(['apikey', 'list', '--json']);
    assert.equal((JSON.parse(stdout) as { keys: object[] }).keys.length, 2);
  });

  it('explains why an address is not available', async () => {
    // Unreferenced, so that it need not be closed if an assertion fails.
    const other = createServer().listen(0, '127.0.0.1').unref();
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const cli = testCli();
    const rows: readonly (readonly [args: readonly string[], env: NodeJS.ProcessEnv, exit: number, says: RegExp])[] = [
      [['--port', String(port)], {}, 1, new RegExp(`^Error: The server cannot start: port ${port} is taken\\.`)],
      [
        ['--port', '0', '--host', '192.0.2.1'],
        {},
        1,
        /^Error: The server cannot start: "192\.0\.2\.1" is not an address of this machine\./,
      ],
      [['--port', '0', '--host', 'no.such.invalid'], {}, 1, /^Error: The server cannot start: .*"no\.such\.invalid"/],
      [['--port', '0', '--host', ' '], {}, 2, /^Error: --host is empty\./],
      [
        ['--port', '65536'],
        {},
        2,
        /^Error: --port is "65536", which is not a port\. Give a number from 0 to 65535\.\nCode: USAGE\nUsage: svc-api serve .*\nSee svc-api serve --help\n$/,
      ],
      [['--port', ''], {}, 2, /^Error: --port is empty\. Give a number from 0 to 65535\./],
      [['--port=-1'], {}, 2, /^Error: --port is "-1", which is not a port\./],
      [[], { SVC_API_PORT: '4e3' }, 2, /^Error: SVC_API_PORT is "4e3", which is not a port\./],
    ];
    for (const [args, env, exit, says] of rows) {
      // Usage errors are found before a server starts.
      const run = exit === 2 ? 'run' : 'runProcess';
      const { stdout, stderr, code } = await cli[run](['serve', ...args], { env: { LOG_LEVEL: 'error', ...env } });
      assert.match(stderr, says);
      assert.match(stderr, /^.*\nCode: \w+\n(Reference: .*|Usage: .*\nSee .*)\n$/, 'one line');
      assert.deepEqual([stdout, code], ['', exit]);
    }
  });

  it('keeps running if its address is not read, and logs no secret at trace', async () => {
    const cli = testCli();
    const { key } = await cli.given('Reader');
    const { url, child, end } = await serve(cli, ['--port', '0'], { LOG_LEVEL: 'trace' });
    child.stdout!.destroy();
    await fetch(`${url}/graphql?key=${key}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}, Bearer ${key}` },
    });
    await query(url, key, `{ apiKey(name: "${key}") { id } }`);
    assert.equal((await query(url, `${key.slice(0, -1)}!`, '{ online }')).status, 401);
    child.kill('SIGTERM');
    const { stderr, code } = await end;
    assert.equal(code, 0);
    assert.ok(stderr.includes('"level":'), 'something is logged');
    assert.ok(!stderr.includes(key.slice(17, 40)));
  });
});

/** Sends a request without the last byte of its body. */
async function half(url: string, key: string) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const body = JSON.stringify({ query: '{ me { name } }' });
  const head = [
    'POST /graphql HTTP/1.1',
    `Host: ${hostname}:${port}`,
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    // The server confirms the headers: from then on the request is in flight.
    'Expect: 100-continue',
    '\r\n',
  ];
  const continued = once(socket, 'data') as Promise<[Buffer]>;
  socket.write(head.join('\r\n'));
  assert.match((await continued)[0].toString(), /^HTTP\/1\.1 100 /);
  socket.write(body.slice(0, -1));
  return { socket, rest: body.slice(-1) };
}

/** Waits until a server accepts no more connections. */
async function refused(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  await until(async () => {
    const socket = connect(Number(port), hostname);
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    return !isOpen;
  });
}
