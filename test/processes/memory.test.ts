import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { cleanEnv, startCli } from '../support/process.ts';
import { needsLinux } from '../support/skip.ts';
import { migratedStore, tempFolder } from '../support/temp.ts';

/** A plain Node server, as a baseline. */
const BARE = `require('node:http').createServer((incoming, outgoing) => outgoing.end())
  .listen(0, '127.0.0.1', () => console.log('Listening'));`;

/**
 * The maximum memory of an idle server after health checks, relative to the baseline. From the second start on, with
 * the compile cache, they take 1.8 and 2 times as much.
 */
const MOST = { guard: 1.9, serve: 2.15 };
/** How often a server above the maximum is restarted. */
const MAX_STARTS = 5;

describe('a server at rest', () => {
  const started: ChildProcess[] = [];
  before(function () {
    needsLinux(this);
  });
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
  });

  /** A listening server: its process, and its address if it prints one. */
  const listening = async (child: ChildProcess): Promise<{ pid: number; url: string | undefined }> => {
    started.push(child);
    const [line] = (await Promise.race([once(child.stdout!, 'data'), once(child, 'exit')])) as [Buffer];
    const [, url] = /^Listening(?: on (\S+))?/.exec(String(line))!;
    return { pid: child.pid!, url };
  };
  /** The resident memory of a process, in KiB. */
  const memoryOf = (pid: number) => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
  const threadsOf = (pid: number) =>
    readdirSync(`/proc/${pid}/task`).map((id) => readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8').trim());

  for (const [command, most] of Object.entries(MOST))
    it(`takes at most ${most} times the memory of a bare one, and has no thread that writes: ${command}`, async () => {
      const database = await migratedStore();
      const upstream = command === 'guard' ? ['http://127.0.0.1:9', '--any-key'] : [];
      const args = [command, ...upstream, '--port', '0', '--database', database];
      const env = { NODE_COMPILE_CACHE: undefined, XDG_CACHE_HOME: tempFolder() };
      const first = startCli(args, { env });
      await listening(first);
      const ended = once(first, 'exit');
      first.kill();
      await ended;
      const bare = await listening(spawn(process.execPath, ['--eval', BARE], { env: cleanEnv(), stdio: 'pipe' }));
      // Garbage collection depends on the load of the machine, so the minimum of several starts counts.
      let least = Infinity;
      for (let starts = 0; starts < MAX_STARTS && least > most; starts += 1) {
        const { pid, url } = await listening(startCli(args, { env }));
        if (command === 'serve')
          for (const path of ['/healthz', '/readyz']) assert.equal((await fetch(url + path)).status, 200);
        least = Math.min(least, memoryOf(pid) / memoryOf(bare.pid));
        assert.deepEqual(
          threadsOf(pid).filter((name) => name === 'WorkerThread'),
          [],
        );
      }
      assert.ok(least <= most, `${least} times`);
    });
});
