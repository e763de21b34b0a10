import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { testCli } from '../support/cli.ts';
import { BIN, cleanEnv, finished, startCli } from '../support/process.ts';
import { query } from '../support/server.ts';
import { until } from '../support/until.ts';

describe('a signal to serve', () => {
  const started: ChildProcess[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
  });

  const start = (args: readonly string[], database = testCli().database, level = 'info') => {
    const child = startCli(['serve', '--port', '0', ...args], {
      env: { SVC_API_DATABASE: database, LOG_LEVEL: level },
    });
    started.push(child);
    return { child, end: finished(child) };
  };
  const formatUrl = async (child: ChildProcess) =>
    /http:\S+/.exec(String((await once(child.stdout!, 'data'))[0] as string))![0];
  const isThere = (pid: number) => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`stops all workers though most are still starting: ${signal} right after the address`, async () => {
      const { child, end } = start(['--workers', '4']);
      await formatUrl(child);
      child.kill(signal);
      const { code, stderr } = await end;
      assert.equal(code, 0);
      assert.match(stderr, /"msg":"stopping"/);
      const pids = new Set(Array.from(stderr.matchAll(/"pid":(\d+)/g), ([, pid]) => Number(pid)));
      for (const pid of pids) assert.equal(isThere(pid), false);
    });
  }

  it('stops the workers once two of four listen', async () => {
    const { child, end } = start(['--workers', '4']);
    let log = '';
    child.stderr!.on('data', (chunk: string) => (log += chunk));
    await until(() => log.split('"msg":"listening"').length > 2);
    child.kill('SIGTERM');
    assert.equal((await end).code, 0);
  });

  for (const args of [[], ['--workers', '2']]) {
    it(`stops it while it waits for its store: serve ${args.join(' ')}`, async () => {
      const store = createServer().listen(0, '127.0.0.1').unref();
      await once(store, 'listening');
      const { port } = store.address() as AddressInfo;
      const { child, end } = start(args, `postgres://svc@127.0.0.1:${port}/keys`);
      const [connection] = (await once(store, 'connection')) as [Socket];
      connection.on('error', () => {});
      child.kill('SIGTERM');
      const { code, stdout } = await end;
      assert.deepEqual([code, stdout], [0, '']);
      store.close();
    });
  }

  for (const args of [[], ['--workers', '2']]) {
    it(`of a terminal that hangs up loses nothing: SIGHUP ${args.join(' ')}`, async () => {
      const cli = testCli();
      const { key } = await cli.given('Reader');
      const child = spawn(process.execPath, [BIN, 'serve', '--port', '0', ...args], {
        env: cleanEnv({ SVC_API_DATABASE: cli.database, LOG_LEVEL: 'info' }),
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true, // A separate process group, so that the test can signal all of it, like a terminal.
      });
      started.push(child);
      let log = '';
      child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
      const url = await formatUrl(child);
      await until(() => log.split('"msg":"listening"').length > (args.length > 0 ? 2 : 1));
      const ended = once(child, 'exit');
      process.kill(-child.pid!, 'SIGHUP');
      await until(() => log.includes('there is nothing to reload'));
      assert.equal((await query(url, key, '{ online }')).status, 200);
      assert.ok(!log.includes('a worker exited'));
      child.kill('SIGTERM');
      assert.deepEqual(await ended, [0, null]);
    });
  }

  it('opens no inspector: SIGUSR1, also in other commands', async () => {
    const { child, end } = start([], undefined, 'debug');
    const url = await formatUrl(child);
    child.kill('SIGUSR1');
    // Node would start it in a thread, and report that on stderr at once.
    for (let time = 0; time < 20; time += 1) assert.equal((await fetch(`${url}/healthz`)).status, 200);
    child.kill('SIGTERM');
    const served = await end;
    assert.deepEqual([served.code, /Debugger|inspector/i.test(served.stderr)], [0, false]);

    const cli = testCli();
    await cli.given('Reader');
    const exec = startCli(['apikey', 'exec', '--roles', 'GUEST', '--', 'sh', '-c', 'echo started; exec sleep 600'], {
      env: { SVC_API_DATABASE: cli.database },
    });
    started.push(exec);
    const ended = finished(exec);
    await once(exec.stdout!, 'data');
    exec.kill('SIGUSR1');
    exec.kill('SIGTERM');
    assert.ok(!/Debugger|inspector/i.test((await ended).stderr));
  });
});
