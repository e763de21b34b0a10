import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { existsSync } from 'node:fs';
import { testCli } from '../support/cli.ts';
import { type Fifo, openFifo } from '../support/fifo.ts';
import { freePort } from '../support/port.ts';
import { BIN, ROOT, startCli } from '../support/process.ts';
import { KEYS, TerminalSession } from '../support/pty.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

/** Runs a command, and creates the file `$0` when a line is typed. */
const NOTING_INPUT = 'exec 3<&0; (read -r _ <&3; : > "$0") & exec "$@"';

describe('a log that is not read', () => {
  const pipes: Fifo[] = [];
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    for (const pipe of pipes.splice(0)) pipe.close();
  });

  /** Starts `serve` with a full pipe for its log, and optionally for stdout. */
  async function startUnread(stdout: 'ignore' | 'pipe', ...args: string[]) {
    const pipe = openFifo({ isFull: true });
    pipes.push(pipe);
    const port = await freePort();
    const child = startCli(['serve', '--port', String(port), ...args], {
      stdio: ['ignore', stdout === 'pipe' ? pipe.input : 'ignore', pipe.input],
      env: { SVC_API_DATABASE: testCli().database },
    });
    children.push(child);
    return { child, pipe, ended: once(child, 'exit'), url: `http://127.0.0.1:${port}` };
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
        assert.ok([401, 429].includes((await query(url, `nonsense${number}`, '{ online }')).status));
      assert.ok(await isAlive(url));
      child.kill('SIGTERM');
      assert.deepEqual(await ended, [0, null]);
    });
  }

  /** Starts `serve` on a terminal, and returns both. */
  async function serveOnTerminal(...args: string[]) {
    const port = await freePort();
    const read = join(tempFolder(), 'read');
    const serve = [process.execPath, BIN, 'serve', '--port', String(port), ...args];
    const env = { SVC_API_DATABASE: testCli().database, LOG_LEVEL: 'info' };
    const terminal = new TerminalSession('/bin/sh', ['-c', NOTING_INPUT, read, ...serve], env);
    const hold = async () => {
      // The terminal reads both keys at once, so it is stopped when the line was read. A key after Ctrl-S would resume
      // it.
      terminal.type(`${KEYS.enter}${KEYS.ctrlS}`);
      await until(() => existsSync(read));
    };
    return { terminal, url: `http://127.0.0.1:${port}`, hold };
  }

  for (const args of [[], ['--workers', '2']]) {
    it(`freezes neither of them on a terminal that is held by Ctrl-S: serve ${args.join(' ')}`, async () => {
      const { terminal, url, hold } = await serveOnTerminal(...args);
      try {
        await terminal.see('"msg":"listening"');
        if (args.length > 0) await terminal.see('"msg":"listening"');
        await hold();
        for (let number = 0; number < 50; number += 1)
          assert.ok([401, 429].includes((await query(url, `nonsense${number}`, '{ online }')).status));
        assert.ok(await isAlive(url));
        assert.ok(!terminal.screen.includes('key refused'), 'the terminal is held');
        terminal.kill('SIGTERM');
        assert.equal(await terminal.end(), 0);
      } finally {
        terminal.close();
      }
    });
  }

  it('loses nothing on a terminal that is let go on by Ctrl-Q', async () => {
    const { terminal, url, hold } = await serveOnTerminal();
    try {
      await terminal.see('"msg":"listening"');
      await hold();
      assert.equal((await query(url, 'nonsense', '{ online }')).status, 401);
      terminal.type(KEYS.ctrlQ);
      await terminal.see('key refused');
    } finally {
      terminal.close();
    }
  });

  it('does not keep a server that cannot start from ending, and gets its error if it reads again', async () => {
    const { ended } = await startUnread('ignore', '--host', '192.0.2.1');
    assert.deepEqual(await ended, [1, null]);

    const { ended: endedLater, pipe } = await startUnread('ignore', '--host', '192.0.2.1');
    let text = '';
    await until(() => ((text += pipe.read()), text.includes('Error: ')));
    assert.deepEqual(await endedLater, [1, null]);
    assert.match(
      (text + pipe.read()).trim(),
      /^\{.*"created a new key store.*\}\nError: The server cannot start: "192\.0\.2\.1" is not an address/,
    );
  });

  it('keeps what fits, and says how many lines it dropped once it is read', async () => {
    const pipe = openFifo();
    pipes.push(pipe);
    const child = startChild(pipe, '40000');
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
    const lines = linesOf(text);
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

  it('of several processes is read whole, line by line, however late', async () => {
    const pipe = openFifo();
    pipes.push(pipe);
    const children = Array.from({ length: 3 }, () => startChild(pipe, '3000'));
    const ended = children.map((child) => once(child, 'exit'));
    await Promise.all(children.map((child) => once(child.stdout!, 'data')));
    for (const child of children) child.stdin!.end();
    let text = '';
    await until(() => ((text += pipe.read()), text.split('the last line').length > 3));
    for (const end of ended) assert.deepEqual(await end, [0, null]);
    assert.equal(linesOf(text + pipe.read()).length, 9003);
  });

  for (const end of ['exit', 'throw'])
    it(`has all lines where the process ends: ${end}`, async () => {
      const pipe = openFifo();
      pipes.push(pipe);
      await once(startChild(pipe, '5', end), 'exit');
      assert.match(pipe.read(), /(?:\{.*"number":\d,"msg":"a line of the log"\}\n){5}/);
    });

  function startChild(pipe: Fifo, ...args: string[]): ChildProcess {
    const child = spawn(process.execPath, [join(ROOT, 'test/support/log-child.ts'), ...args], {
      stdio: ['pipe', 'pipe', pipe.input],
    });
    children.push(child);
    return child;
  }

  const linesOf = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { number?: number; dropped?: number; msg: string });
});
