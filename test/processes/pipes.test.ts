import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { BIN, cleanEnv, finished, runCli } from '../support/process.ts';
import { tempStore } from '../support/temp.ts';

describe('the commands', () => {
  it('are listed by --help, by -h and without arguments', async () => {
    const [long, short, none] = await Promise.all([['--help'], ['-h'], []].map((args) => runCli(args)));
    assert.match(long!.stdout, /\n {2}apikey +Create or delete an API key\.\n.*\n {2}serve +Serve a GraphQL endpoint/s);
    assert.deepEqual([long!.stderr, long!.code], ['', 0]);
    assert.deepEqual(short, long);
    assert.deepEqual(none, long);
  });

  it('print their help into a pipe that is closed early without complaint', async () => {
    const scripts = ['set -o pipefail; "$@" | head -1', 'exec 3> >(exec true); wait $!; "$@" >&3'];
    const [head, dead] = await Promise.all(
      scripts.map((script) =>
        finished(spawn('bash', ['-c', script, 'bash', process.execPath, BIN, 'apikey', '--help'], { env: cleanEnv() })),
      ),
    );
    assert.deepEqual(head, { stdout: 'Create or delete an API key.\n', stderr: '', code: 0, signal: null });
    assert.deepEqual(dead, { stdout: '', stderr: '', code: 0, signal: null });
  });

  it('end without an error, as SIGPIPE would end them, when nobody reads on', async () => {
    const database = tempStore();
    await runCli(['apikey', 'create', '--name', 'One', '--roles', 'GUEST', '--database', database]);
    const script = 'exec 3> >(exec true); wait $!; "$@" >&3';
    const commands = ['apikey list', 'apikey list --json', 'apikey export', 'apikey log', '--version'];
    for (const command of commands) {
      const args = [...command.split(' '), ...(command.startsWith('-') ? [] : ['--database', database])];
      const child = spawn('bash', ['-c', script, 'bash', process.execPath, BIN, ...args], { env: cleanEnv() });
      assert.deepEqual(await finished(child), { stdout: '', stderr: '', code: 141, signal: null }, command);
    }
  });
});
