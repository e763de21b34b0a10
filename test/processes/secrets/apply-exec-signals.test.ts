import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { exitCodeOf } from '../../../src/cli/error-codes.ts';
import { type TestApply, testApply } from '../../support/apply.ts';
import { changeDirectly } from '../../support/direct.ts';
import { type Finished, finished, startCli } from '../../support/process.ts';
import { cliOnTerminal, KEYS, type TerminalSession } from '../../support/pty.ts';
import { isAccepted, keyNamed } from '../../support/stored.ts';

const TWO_DAYS = 2 * 86_400_000;

describe('a signal to apply --exec', () => {
  let test: TestApply;
  let folder: string;
  let running: ChildProcess | undefined;
  let terminal: TerminalSession | undefined;
  beforeEach(() => {
    test = testApply();
    folder = join(dirname(test.file), 'taken');
    mkdirSync(folder);
  });
  afterEach(() => {
    terminal?.close();
    try {
      if (running) process.kill(-running.pid!, 'SIGKILL');
    } catch {
      // It has ended.
    }
    terminal = running = undefined;
  });

  /** Applies in a new session, and sends a signal while the command for the key "Running" runs. */
  function interrupt(signal: NodeJS.Signals, ...flags: string[]): Promise<Finished> {
    const take = `ulimit -c 0; cat > "${folder}/$SVC_API_KEY_NAME"; echo "run $SVC_API_KEY_NAME"`;
    const command = `${take}; [ "$SVC_API_KEY_NAME" = Taken ] || exec tail -f /dev/null`;
    const apply = startCli(['apikey', 'apply', '-f', test.file, '--exec', command, ...flags], {
      env: { SVC_API_DATABASE: test.cli.database },
      detached: true,
    });
    running = apply;
    createInterface({ input: apply.stderr! }).on('line', (line) => line === 'run Running' && apply.kill(signal));
    return finished(apply);
  }

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) {
    it(`ends the command, starts no other, and reverts keys that were not handed over: ${signal}`, async () => {
      test.declare('keys: [{name: Old, roles: [GUEST]}, {name: Later, roles: [GUEST], rotate: {every: 1d}}]');
      const { keys } = (await test.json()) as unknown as { keys: { key: string }[] };
      const older = `update api_keys set created_at = created_at - ${TWO_DAYS} where managed = 1`;
      await changeDirectly(test.cli.database, older);
      const [old, later] = ['{name: Old, roles: [VIEWER]}', '{name: Later, roles: [GUEST], rotate: {every: 1d}}'];
      test.declare(`keys: [${old}, {name: Taken, roles: [GUEST]}, {name: Running, roles: [GUEST]}, ${later}]`);

      const isJson = signal === 'SIGHUP';
      const { stdout, stderr, code } = await interrupt(signal, ...(isJson ? ['--json'] : []));
      const told = [
        `Ended by ${signal}. The command for the secret of "Running" was ended by ${signal}: that secret was revoked.`,
        'The command for the secret of "Later" was not run: that secret was revoked.',
        'All other changes were made. Apply again for the rest.',
      ];
      const error = isJson ? '' : `Error: ${told.join('\n       ')}\n`;
      assert.deepEqual([stderr, code], [`run Taken\nrun Running\n${error}`, exitCodeOf(signal)]);
      if (isJson) assert.deepEqual(JSON.parse(stdout), { error: told.join(' '), code: 'INTERRUPTED' });
      else assert.equal(stdout, '');

      const { database } = test.cli;
      assert.deepEqual(await test.names(), ['Later', 'Old', 'Taken']);
      assert.deepEqual((await keyNamed(database, 'Old'))!.roles, ['VIEWER']);
      assert.equal((await keyNamed(database, 'Later'))!.rotation, null);
      assert.ok(await isAccepted(database, keys[1]!.key));
      assert.ok(await isAccepted(database, readFileSync(join(folder, 'Taken'), 'utf8')));
      assert.ok(!(await isAccepted(database, readFileSync(join(folder, 'Running'), 'utf8'))));
      assert.deepEqual(readdirSync(folder), ['Running', 'Taken']);

      const { created, rotated, unchanged } = await test.json('--exec', 'cat > /dev/null');
      assert.deepEqual([created, rotated, unchanged], [1, 1, 2]);
    });
  }

  it('goes to the command once if a terminal sends it to both, and is reported though all was handed over', async () => {
    test.declare('keys: [{name: One, roles: [GUEST]}]');
    const counting = `
      let count = 0;
      process.on("SIGINT", () => console.log("SIGINT", ++count)).on("SIGTERM", () => process.exit(count - 1));
      console.log("run as child of " + process.ppid + ".");
      setInterval(() => {}, 1000);`;
    const command = `exec '${process.execPath}' -e '${counting}'`;
    const env = { SVC_API_DATABASE: test.cli.database };
    terminal = cliOnTerminal(['apikey', 'apply', '-f', test.file, '--exec', command], env);
    await terminal.see('run as child of ');
    await terminal.see('.');
    const [, apply] = /child of (\d+)\./.exec(terminal.screen)!;
    terminal.type(KEYS.ctrlC);
    await terminal.see('SIGINT 1');
    process.kill(Number(apply), 'SIGTERM');
    await terminal.see('All changes were made.');
    // Two simultaneous signals can arrive in either order.
    const [, first] = /Error: Ended by (SIGINT|SIGTERM)\./.exec(terminal.screen)!;
    assert.equal(await terminal.end(), exitCodeOf(first as NodeJS.Signals));
    assert.deepEqual(await test.names(), ['One']);
  });
});
