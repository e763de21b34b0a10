import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { handedSocket, readAddress } from '../../../src/cli/serve/options.ts';
import { testCli } from '../../support/cli.ts';
import { freePort } from '../../support/port.ts';
import { BIN, cleanEnv, finished, startCli } from '../../support/process.ts';
import { query } from '../../support/server.ts';
import { needsPrograms } from '../../support/skip.ts';
import { type Notified, openSocket, startNotified, startOnSocket } from '../../support/systemd.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

const started: ChildProcess[] = [];
const formatUrl = async (child: ChildProcess) =>
  /^Listening on (\S+)\n$/.exec(String((await once(child.stdout!, 'data'))[0]))![1]!;
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

describe('serve as a service of the type notify', () => {
  let systemd: Notified;
  before(function () {
    needsPrograms(this, 'systemd-notify', 'python3');
  });
  beforeEach(async () => {
    systemd = await startNotified();
  });
  afterEach(() => systemd.stop());
  const start = (args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
    const child = startCli(['serve', '--port', '0', '--database', testCli().database, ...args], {
      env: { LOG_LEVEL: 'warn', ...systemd.env, ...env },
    });
    started.push(child);
    return child;
  };

  for (const workers of ['1', '2']) {
    it(`says when it listens, reads its configuration again, and stops: --workers ${workers}`, async () => {
      const config = join(tempFolder(), 'svc-api.yaml');
      writeFileSync(config, 'resources: [WIKI]');
      const child = start(['--workers', workers, '--config', config]);
      const url = await formatUrl(child);
      await until(() => systemd.said.length === 1);
      const before = process.hrtime.bigint() / 1000n;
      child.kill('SIGHUP');
      await until(() => systemd.said.length === 3);
      child.kill('SIGTERM');
      const end = await once(child, 'exit');
      await until(() => systemd.said.length === 4);
      const [ready, [reloading, clock], again, stopping] = systemd.said as [string[], [string, string], ...string[][]];
      assert.deepEqual(ready, ['READY=1', `STATUS=Listening on ${url}`]);
      assert.deepEqual([reloading, again, stopping], ['RELOADING=1', ['READY=1'], ['STOPPING=1']]);
      const at = BigInt(/^MONOTONIC_USEC=(\d+)$/.exec(clock)![1]!);
      assert.ok(at >= before && at <= process.hrtime.bigint() / 1000n, 'it is the clock of the system');
      assert.deepEqual(end, [0, null]);
    });
  }

  it('says that it is alive twice as often as the watchdog wants, if it is the process that is watched', async () => {
    const child = start([], { WATCHDOG_USEC: '100000' });
    await formatUrl(child);
    const pings = () => systemd.said.filter(([said]) => said === 'WATCHDOG=1').length;
    await until(() => pings() >= 3);
    assert.deepEqual(systemd.said[0]![0], 'READY=1');
    child.kill('SIGTERM');
    await once(child, 'exit');

    const other = await startNotified();
    const unwatched = start([], { WATCHDOG_USEC: '1000', WATCHDOG_PID: '1', ...other.env });
    await formatUrl(unwatched);
    unwatched.kill('SIGTERM');
    await until(() => other.said.length === 2);
    assert.deepEqual(
      other.said.map(([said]) => said),
      ['READY=1', 'STOPPING=1'],
    );
    other.stop();
  });

  it('reports no more often than possible, and stops in time', async () => {
    const folder = tempFolder();
    // Slower than the watchdog's interval.
    writeFileSync(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$1" >> ${folder}/said\nsleep 0.2\n`, {
      mode: 0o755,
    });
    const said = () => readFileSync(join(folder, 'said'), 'utf8').trimEnd().split('\n');
    const env = { PATH: `${folder}:${process.env['PATH']}`, WATCHDOG_USEC: '2000' };
    const child = start([], env);
    await formatUrl(child);
    await until(() => existsSync(join(folder, 'said')) && said().length > 5);
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
    await until(() => said().includes('STOPPING=1'));
    assert.equal(said().at(-1), 'STOPPING=1');
  });

  for (const period of ['-5', '99999999999999', 'often'])
    it(`does not take ${period} for no time at all`, async () => {
      const child = start([], { WATCHDOG_USEC: period });
      await formatUrl(child);
      await until(() => systemd.said.length === 1);
      child.kill('SIGTERM');
      await once(child, 'exit');
      await until(() => systemd.said.some(([said]) => said === 'STOPPING=1'));
      assert.deepEqual(
        systemd.said.map(([word]) => word),
        ['READY=1', 'STOPPING=1'],
      );
    });

  it('serves if it cannot report that, and logs that once', async () => {
    const child = start([], { PATH: tempFolder() });
    const end = finished(child);
    const url = await formatUrl(child);
    child.kill('SIGHUP');
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    child.kill('SIGTERM');
    const { code, stderr } = await end;
    assert.deepEqual([code, stderr.match(/systemd is not notified/g)?.length], [0, 1], stderr);
  });
});

describe('serve on a socket that it is handed', () => {
  it('is started by systemd-socket-activate with the first request, which it answers', async function () {
    needsPrograms(this, 'systemd-socket-activate');
    const cli = testCli();
    const { key } = await cli.given('Reader');
    const port = await freePort();
    const args = [`--listen=127.0.0.1:${port}`, `--setenv=SVC_API_DATABASE=${cli.database}`];
    const child = spawn('systemd-socket-activate', [...args, process.execPath, BIN, 'serve'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    started.push(child);
    const end = finished(child);
    await until(() =>
      query(`http://127.0.0.1:${port}`, key, '{ online }').then(
        ({ status }) => status === 200,
        ({ cause }: { cause: { code: string } }) => {
          assert.equal(cause.code, 'ECONNREFUSED', 'it does not listen yet');
          return false;
        },
      ),
    );
    child.kill('SIGTERM');
    const { code, stdout } = await end;
    assert.deepEqual([code, stdout], [0, `Listening on http://127.0.0.1:${port}\n`]);
  });

  for (const workers of ['1', '2']) {
    it(`leaves a Unix socket to its owner, and knows its path: --workers ${workers}`, async () => {
      const cli = testCli();
      const path = join(tempFolder(), 'api.sock');
      const socket = openSocket(path);
      const args = ['serve', '--workers', workers, '--database', cli.database];
      const child = startOnSocket(socket, args, { LOG_LEVEL: 'error', SVC_API_PORT: '1' });
      started.push(child);
      const end = finished(child);
      assert.equal(await formatUrl(child), `unix:${path}`);
      const asked = request({ socketPath: path, path: '/readyz', agent: false }).end();
      const [{ statusCode }] = (await once(asked, 'response')) as [IncomingMessage];
      assert.equal(statusCode, 200);
      child.kill('SIGTERM');
      const { code, stderr } = await end;
      assert.deepEqual([code, stderr, lstatSync(path).isSocket()], [0, '', true]);
      socket.close();
    });
  }

  it('is one, and no flag says otherwise', () => {
    const env = { LISTEN_PID: String(process.pid), LISTEN_FDS: '1' };
    const flags = { host: undefined, port: undefined, socket: undefined, 'tls-cert': undefined, 'tls-key': undefined };
    assert.equal(readAddress(flags, { ...env, SVC_API_PORT: '5000' }, 4000).fd, 3);
    for (const flag of ['host', 'port', 'socket'])
      assert.throws(() => readAddress({ ...flags, [flag]: '1' }, env, 4000), {
        code: 'USAGE',
        message: `--${flag} and a socket from systemd (LISTEN_FDS) cannot be used together. Pass one of them.`,
      });
    assert.throws(() => handedSocket({ ...env, LISTEN_FDS: '2' }), {
      code: 'LISTEN_FAILED',
      message: /^The server cannot start: 2 sockets were passed to it \(LISTEN_FDS\), but it accepts only one\. /,
    });
    for (const other of [{ LISTEN_PID: '1' }, { LISTEN_PID: undefined }, { LISTEN_FDS: undefined }])
      assert.equal(handedSocket({ ...env, ...other }), undefined);
  });

  for (const workers of ['1', '2']) {
    it(`reports an invalid one: --workers ${workers}`, async () => {
      const script = 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@" 3< /dev/null';
      const args = [BIN, 'serve', '--workers', workers, '--database', testCli().database];
      const { code, stderr } = await finished(
        spawn('sh', ['-c', script, process.execPath, ...args], { env: cleanEnv(), stdio: ['ignore', 'pipe', 'pipe'] }),
      );
      assert.equal(code, 1);
      assert.match(stderr, /the inherited descriptor 3 is not a socket that accepts connections \(EINVAL\)/);
      assert.match(stderr, /Code: LISTEN_FAILED/);
    });
  }
});
