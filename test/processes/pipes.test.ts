import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../support/cli.ts';
import { errorText } from '../support/errors.ts';
import { BIN, cleanEnv, finished, runCli } from '../support/process.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

describe('the commands', () => {
  it('are listed by --help, by -h and without arguments', async () => {
    const [long, short, none] = await Promise.all([['--help'], ['-h'], []].map((args) => runCli(args)));
    assert.match(long!.stdout, /\n {2}apikey create +Create an API key\.\n.*\n {2}serve +Serve a GraphQL endpoint/s);
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
    assert.deepEqual(head, { stdout: 'Create, delete and manage API keys.\n', stderr: '', code: 0, signal: null });
    assert.deepEqual(dead, { stdout: '', stderr: '', code: 0, signal: null });
  });

  it('end without an error, as SIGPIPE would end them, when their reader has gone', async () => {
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

  it('fail in one error when their device is full, as does each page of help, and not when stdout is closed', async () => {
    const database = tempStore();
    await runCli(['apikey', 'create', '--name', 'One', '--roles', 'GUEST', '--database', database]);
    const home = tempFolder();
    const config = join(home, 'svc-api.yaml');
    writeFileSync(config, 'routes: []\n');
    const env = cleanEnv({ HOME: home, XDG_CACHE_HOME: home, SVC_API_DATABASE: database });
    const pages = ['', '--help', '-h', 'help', 'help exit-codes', 'help apikey rotate', 'routes'];
    const programs = ['serve --help', 'version', '--version', '-V'];
    const commands = ['--help', 'create --help', 'help', 'help environment', 'help rotate', 'list', 'list --json'];
    const others = [
      'show One',
      'show One --json',
      'log',
      'log --json',
      'suggest One --json',
      'usage One --json',
      'requests --json',
      'create Two --roles GUEST --dry-run',
    ];
    const lines = [
      ...pages,
      ...programs,
      `explain GET http://a.example/ --config ${config}`,
      ...[...commands, ...others, 'autocomplete fish', 'export'].map((verb) => `apikey ${verb}`),
    ];
    // One of each way to write output. A process for every command would add nothing.
    const closed = new Set([
      '--help',
      'help exit-codes',
      'version',
      'apikey help rotate',
      'apikey list',
      'apikey list --json',
    ]);
    for (const line of lines)
      for (const redirection of closed.has(line) ? ['> /dev/full', '>&-'] : ['> /dev/full']) {
        const args = ['bash', process.execPath, BIN, ...line.split(' ').filter(Boolean)];
        const child = spawn('bash', ['-c', `"$@" ${redirection}`, ...args], { env });
        const { stderr, code } = await finished(child);
        const errors = stderr.replace(/^No .* found\.\n/, '');
        const failed = errorText('OUTPUT_FAILED', 'The output could not be written to stdout (ENOSPC).');
        // A closed stdout is indistinguishable from a discarded one.
        const expected = redirection === '>&-' ? ['', 0] : [failed, 1];
        assert.deepEqual([errors, code], expected, `${line} ${redirection}`);
      }
  });

  it('report changes if their output cannot be written, and nothing more without changes', async () => {
    const cli = testCli();
    for (const name of ['One', 'Two', 'Three']) await cli.given(name);
    await cli.run(['apikey', 'rotate', 'Two']);
    const folder = tempFolder();
    const backup = join(folder, 'backup.sqlite');
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    const [made, nothing] = [/^ The changes were made\.$/, /^$/];
    for (const [line, said] of [
      ['update One --owner Ada', made],
      ['update One --owner Ada', nothing],
      ['update --where-owner Ada --owner Eve --dry-run', nothing],
      ['update --where-owner Ada --owner Eve --yes --json', made],
      ['disable One', made],
      ['disable One', nothing],
      ['enable One', made],
      ['revoke One --undo-changes --dry-run', nothing],
      ['revoke One --undo-changes --yes', made],
      ['revoke One --undo-changes --yes', nothing],
      ['rotate Two --finish', made],
      ['update One --detach', nothing],
      [`backup ${backup}`, /^ Wrote 3 keys .* checked them\.$/],
      [`export --to ${join(folder, 'copy.sqlite')}`, /^ Copied 3 keys .* compared them\.$/],
      ['delete One', made],
      ['delete --search T --dry-run', nothing],
      ['delete --search T --yes', made],
      ['doctor --fix', /^ Returned .* to the disk\.$/],
      ['log --prune --until 2020-01-01 --yes', nothing],
      [`log --prune --until ${tomorrow} --yes`, /^ Deleted \d+ entries .*\.$/],
      [`restore ${backup} --dry-run`, nothing],
      [`restore ${backup} --yes`, /^ Restored a backup with 3 keys .*\s+The store as it was before is .*$/],
    ] as const) {
      const args = ['bash', process.execPath, BIN, 'apikey', ...line.split(' ')];
      const env = cleanEnv({ SVC_API_DATABASE: cli.database });
      const { stderr, code } = await finished(spawn('bash', ['-c', '"$@" > /dev/full', ...args], { env }));
      const [, text = stderr] = /to stdout \(ENOSPC\)\.(.*)\nCode: OUTPUT_FAILED\n/s.exec(stderr) ?? [];
      assert.match(text, said, line);
      assert.equal(code, 1, line);
    }
  });

  it('are done where their output is closed', async () => {
    const database = tempStore();
    await runCli(['apikey', 'create', '--name', 'One', '--roles', 'GUEST', '--database', database]);
    for (const [line, exit] of [
      ['explain One DOCKER:READ_ANY', 4],
      ['disable One', 0],
      ['log --prune --until 1d --yes', 0],
      ['delete One --yes', 0],
    ] as const) {
      const args = ['bash', process.execPath, BIN, 'apikey', ...line.split(' '), '--database', database];
      const child = spawn('bash', ['-c', '"$@" >&-', ...args], { env: cleanEnv() });
      assert.deepEqual(await finished(child), { stdout: '', stderr: '', code: exit, signal: null }, line);
    }
  });
});
