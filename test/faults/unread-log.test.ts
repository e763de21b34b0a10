import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { testCli } from '../support/cli.ts';
import { type Fifo, openFifo } from '../support/fifo.ts';
import { freePort } from '../support/port.ts';
import { ROOT, startCli } from '../support/process.ts';
import { query } from '../support/server.ts';
import { until } from '../support/until.ts';

describe('a log that nobody reads', () => {
  const pipes: Fifo[] = [];
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    for (const pipe of pipes.splice(0)) pipe.close();
  });

  /** Starts `serve` with a full pipe for its log, and perhaps for its stdout. */
  async function startUnread(stdout: 'ignore' | 'pipe', ...args: string[]) {
    const pipe = openFifo({ isFull: true });
    pipes.push(pipe);
    const port = await freePort();
    const child = startCli(['serve', '--port', String(port), ...args], {
      stdio: ['ignore', stdout === 'pipe' ? pipe.input : 'ignore', pipe.input],
      env: { SVC_API_DATABASE: testCli().database },
    });
    children.push(child);
    return { child, ended: once(child, 'exit'), url: `http://127.0.0.1:${port}` };
  }

  const isAlive = (url: string) =>
    fetch(`${url}/healthz`).then(
      ({ status }) => status === 200,
      () => false,
    );

  for (const [what, stdout, ...args] of [
    ['freezes neither the answers nor the stop', 'ignore'],
    ['freezes neither of them where stdout is the same pipe', 'pipe'],
    ['freezes neither of them with workers', 'pipe', '--workers', '2'],
  ] as const) {
    it(what, async () => {
      const { child, ended, url } = await startUnread(stdout, ...args);
      await until(() => isAlive(url));
      for (let number = 0; number < 50; number += 1)
        assert.equal((await query(url, `nonsense${number}`, '{ online }')).status, 401);
      assert.ok(await isAlive(url));
      child.kill('SIGTERM');
      assert.deepEqual(await ended, [0, null]);
    });
  }

  it('keeps what it has room for, and says how many lines it dropped as soon as it is read', async () => {
    const pipe = openFifo();
    pipes.push(pipe);
    const child = spawn(process.execPath, [join(ROOT, 'test/support/log-child.ts'), '40000'], {
      stdio: ['pipe', 'pipe', pipe.input],
    });
    children.push(child);
    const ended = once(child, 'exit');
    await once(child.stdout!, 'data');
    let text = '';
    const read = () => {
      text += pipe.read();
    };
    await until(() => (read(), text.includes('dropped')));
    child.stdin!.end();
    assert.deepEqual(await ended, [0, null]);
    read();
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { number?: number; dropped?: number; msg: string });
    const [kept, others] = [lines.slice(0, -2), lines.slice(-2)];
    assert.deepEqual(
      kept.map(({ number }) => number),
      kept.map((_, index) => index),
    );
    const dropped = 40_000 - kept.length;
    assert.ok(dropped > 0);
    assert.deepEqual(
      others.map((line) => [line.msg, line.dropped]),
      [
        [`${dropped} lines dropped`, dropped],
        ['the last line', undefined],
      ],
    );
  });
});
