import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { exitCodeOf } from '../../../src/cli/error-codes.ts';
import { runWithKey } from '../../../src/features/exec/cli/run-with-key.ts';
import type { TemporaryKey } from '../../../src/features/exec/cli/temporary-key.ts';
import { endExecs, execArgs, noKeysIn, SAY_WHO, startExec } from '../../support/exec.ts';
import { authenticate, openTestKeys } from '../../support/keys.ts';
import { BIN } from '../../support/process.ts';
import { cliOnTerminal, KEYS, TerminalSession } from '../../support/pty.ts';
import { isAccepted, keysIn } from '../../support/stored.ts';
import { tempFolder, tempStore } from '../../support/temp.ts';

const node = process.execPath;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** A command that counts its signals. When stdin ends, it exits with the count. */
const COUNTING = `
  let count = 0;
  for (const signal of ${JSON.stringify(SIGNALS)}) process.on(signal, () => console.log(signal, ++count));
  process.stdin.resume().on('end', () => process.exit(count));
  console.log(process.pid, process.env.API_KEY);`;

describe('a signal to apikey exec', () => {
  afterEach(endExecs);
  let database: string;
  beforeEach(() => {
    database = tempStore();
  });

  for (const signal of SIGNALS) {
    it(`is forwarded, and ends the command, the key and itself: ${signal}`, async () => {
      const running = await startExec(database, ['sh', '-c', `ulimit -c 0; ${SAY_WHO}; read line`]);
      running.process.kill(signal);
      const { stderr, code } = await running.ended;
      assert.deepEqual([stderr, code], ['', exitCodeOf(signal)]);
      assert.equal(await isAccepted(database, running.secret), false);
      assert.deepEqual(await keysIn(database), []);
    });

    it(`deletes the key at once where the command goes on, which is waited for: ${signal}`, async () => {
      const running = await startExec(database, [node, '-e', COUNTING]);
      assert.ok(await isAccepted(database, running.secret));
      running.process.kill(signal);
      assert.equal(await running.line(), `${signal} 1`);
      await noKeysIn(database);
      assert.equal(running.process.exitCode, null);
      // A second signal is passed on as well.
      running.process.kill(signal);
      assert.equal(await running.line(), `${signal} 2`);
      running.process.stdin!.end();
      const { stderr, code } = await running.ended;
      assert.deepEqual([stderr, code], ['', 2]);
    });
  }

  it('leaves the exit code to a command that handles it', async () => {
    const running = await startExec(database, [
      node,
      '-e',
      `${COUNTING}; process.once('SIGTERM', () => process.exit(30))`,
    ]);
    running.process.kill('SIGTERM');
    assert.equal((await running.ended).code, 30);
    assert.deepEqual(await keysIn(database), []);
  });

  it('goes through one that runs in another, and deletes both keys', async () => {
    const inner = [node, BIN, 'apikey', 'exec', '--roles', 'GUEST', '--', 'sh', '-c', `${SAY_WHO}; read line`];
    const running = await startExec(database, inner);
    assert.equal((await keysIn(database)).length, 2);
    running.process.kill('SIGTERM');
    const { stderr, code } = await running.ended;
    assert.deepEqual([stderr, code], ['', 143]);
    assert.deepEqual(await keysIn(database), []);
  });

  it('leaves the key to expire after SIGKILL, which cannot be handled', async () => {
    const running = await startExec(database, ['sh', '-c', `${SAY_WHO}; read line`], { flags: ['--ttl', '90s'] });
    running.process.kill('SIGKILL');
    const closed = running.ended;
    running.process.stdin!.end('\n');
    assert.equal((await closed).signal, 'SIGKILL');
    const { keys, store, time } = await openTestKeys({ asServer: true, database });
    const [key] = await keysIn(database);
    assert.equal(key!.expiresAt! - key!.createdAt, 90_000);
    time.now = key!.expiresAt! - 1;
    assert.ok('principal' in (await authenticate(keys, running.secret)));
    time.now += 1;
    assert.ok('refused' in (await authenticate(keys, running.secret)));
    await store.close();
  });
});

describe('a signal to the command of apikey exec', () => {
  afterEach(endExecs);
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGSEGV'] as const) {
    it(`ends the key, too: ${signal}`, async () => {
      const database = tempStore();
      const running = await startExec(database, ['sh', '-c', `ulimit -c 0; ${SAY_WHO}; read line`]);
      process.kill(running.pid, signal);
      const { stderr, code } = await running.ended;
      assert.deepEqual([stderr, code], ['', exitCodeOf(signal)]);
      assert.deepEqual(await keysIn(database), []);
    });
  }
});

describe('a signal while the key is made', () => {
  it('keeps the command from starting, and deletes the key', async () => {
    const marker = join(tempFolder(), 'ran');
    const listeners = () => SIGNALS.map((signal) => process.listenerCount(signal));
    const before = listeners();
    let removed = 0;
    const create = (): Promise<TemporaryKey> => {
      process.emit('SIGTERM', 'SIGTERM');
      return Promise.resolve({
        secret: 'x',
        name: 'x',
        expiresAt: null,
        remove: () => Promise.resolve(void (removed += 1)),
      });
    };
    const code = await runWithKey({
      command: 'touch',
      args: [marker],
      environment: process.env,
      variable: 'API_KEY',
      create,
      note: assert.fail,
    });
    assert.deepEqual([code, removed, existsSync(marker)], [143, 1, false]);
    assert.deepEqual(listeners(), before);
  });
});

describe('a removal that failed at a signal', () => {
  it('is tried again at the end of the command', async () => {
    let tries = 0;
    const remove = () => (++tries === 1 ? Promise.reject(new Error('locked')) : Promise.resolve());
    const create = () => Promise.resolve({ secret: 'x', name: 'x', expiresAt: null, remove });
    const script = `process.once('SIGTERM', () => process.exit(4)); process.kill(process.ppid, 'SIGTERM'); setInterval(() => {}, 1000)`;
    const code = await runWithKey({
      command: node,
      args: ['-e', script],
      environment: process.env,
      variable: 'API_KEY',
      create,
      note: assert.fail,
    });
    assert.deepEqual([code, tries], [4, 2]);
  });
});

describe('apikey exec on a terminal', () => {
  let database: string;
  let terminal: TerminalSession | undefined;
  beforeEach(() => {
    database = tempStore();
  });
  afterEach(() => terminal?.close());
  const start = (...command: string[]) => {
    terminal = cliOnTerminal(execArgs(command), { SVC_API_DATABASE: database });
    return terminal;
  };

  for (const [name, typed, signal] of [
    ['Ctrl-C', KEYS.ctrlC, 'SIGINT'],
    ['Ctrl-\\', KEYS.ctrlBackslash, 'SIGQUIT'],
  ] as const) {
    it(`leaves ${name} to the terminal, which sends it to the command once`, async () => {
      const running = start(node, '-e', COUNTING);
      await running.see('svc_');
      running.type(typed);
      await running.see(`${signal} 1`);
      // The signal would have been passed on by now.
      await noKeysIn(database);
      running.type(KEYS.ctrlD);
      assert.equal(await running.end(), 1);
    });
  }

  it('ends at Ctrl-C with the command and the key', async () => {
    const running = start('sh', '-c', `${SAY_WHO}; read line`);
    await running.see('svc_');
    running.type(KEYS.ctrlC);
    assert.equal(await running.end(), 130);
    assert.doesNotMatch(running.screen, /Error|\n {4}at /);
    assert.deepEqual(await keysIn(database), []);
  });

  it('forwards signals that others send only to it', async () => {
    const running = start('sh', '-c', 'echo "parent $PPID."; read line');
    await running.see('parent ');
    await running.see('.');
    const [, pid] = /parent (\d+)\./.exec(running.screen)!;
    process.kill(Number(pid), 'SIGTERM');
    assert.equal(await running.end(), 143);
    assert.deepEqual(await keysIn(database), []);
  });

  it('stops at Ctrl-Z with the command, and both go on in the foreground', async () => {
    const script = 'set -m; "$@"; echo "stopped $?"; fg > /dev/null; echo "ended $?"';
    const exec = [node, BIN, ...execArgs(['sh', '-c', `${SAY_WHO}; read line; echo "read $line"; exit 3`])];
    terminal = new TerminalSession('bash', ['-c', script, 'bash', ...exec], { SVC_API_DATABASE: database });
    await terminal.see('svc_');
    terminal.type(KEYS.ctrlZ);
    await terminal.see('stopped 148');
    assert.equal((await keysIn(database)).length, 1);
    terminal.type('on\r');
    await terminal.see('read on');
    await terminal.see('ended 3');
    await terminal.end();
    assert.deepEqual(await keysIn(database), []);
  });
});
