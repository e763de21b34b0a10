import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { BIN, cleanEnv, type Finished, finished, ROOT, runCli } from '../support/process.ts';
import { newUser } from '../support/shell.ts';
import { tempFolder } from '../support/temp.ts';

/** The paths of all files below a folder, hidden ones included. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted();
}

describe('svc-api autocomplete', () => {
  it('writes to its cache folder, and nowhere else', async () => {
    const user = newUser();
    const work = tempFolder();
    const cache = tempFolder();
    const { code, stdout } = await runCli(['autocomplete', 'bash'], {
      cwd: work,
      env: { ...user.env, XDG_CACHE_HOME: cache },
    });
    assert.equal(code, 0);
    assert.match(stdout, /svc-api autocomplete script bash/);
    assert.deepEqual(filesIn(cache), [
      'svc-api/autocomplete/bash_setup',
      'svc-api/autocomplete/functions/bash/svc-api.bash',
      'svc-api/autocomplete/functions/powershell/svc-api.ps1',
      'svc-api/autocomplete/functions/zsh/_svc-api',
      'svc-api/autocomplete/zsh_setup',
    ]);
    assert.deepEqual([readdirSync(user.home), readdirSync(work)], [[], []]);
  });

  it('is listed by the help, which writes nothing', async () => {
    const user = newUser();
    const [help, own] = await Promise.all(
      [['--help'], ['autocomplete', '--help']].map((args) => runCli(args, { env: user.env })),
    );
    assert.match(help!.stdout, /\n {2}autocomplete +Display autocomplete/);
    assert.match(own!.stdout, /USAGE\n {2}\$ svc-api autocomplete/);
    for (const text of [own!.stdout, (await runCli(['help', 'autocomplete'], { env: user.env })).stdout]) {
      assert.match(text, /\(bash\|zsh\|fish\|powershell\)/);
      assert.match(text, /svc-api autocomplete fish\n/);
    }
    assert.deepEqual(readdirSync(user.home), []);
  });

  it('refuses a shell that it does not know', async () => {
    const { code, stderr } = await runCli(['autocomplete', 'tcsh'], { env: newUser().env });
    assert.equal(code, 2);
    assert.match(stderr, /^Error: "tcsh" is not one of bash, zsh, fish or powershell\.$/m);
  });

  it('writes the same scripts whenever it is asked, which is what "apikey completion" prints', async () => {
    const { home, env } = newUser();
    const functions = join(home, '.cache/svc-api/autocomplete/functions');
    for (const args of [
      ['autocomplete', 'bash'],
      ['autocomplete', '--refresh-cache'],
      ['autocomplete', 'script', 'zsh'],
    ]) {
      assert.equal((await runCli(args, { env })).code, 0);
      for (const [shell, file] of [
        ['bash', 'bash/svc-api.bash'],
        ['zsh', 'zsh/_svc-api'],
      ] as const) {
        const { stdout } = await runCli(['apikey', 'completion', shell], { env });
        assert.equal(readFileSync(join(functions, file), 'utf8'), stdout);
      }
    }
  });

  it('prints for fish what a user of fish gets who names no shell', async () => {
    const { env } = newUser();
    const [named, ...others] = await Promise.all([
      runCli(['autocomplete', 'fish'], { env }),
      runCli(['apikey', 'completion', 'fish'], { env }),
      runCli(['autocomplete', 'script', 'fish'], { env }),
      runCli(['autocomplete'], { env: { ...env, SHELL: '/usr/bin/fish' } }),
    ]);
    assert.match(named.stdout, /^# Completion of svc-api for fish\n/);
    for (const other of others) assert.deepEqual(other, named);
  });

  it('ends in one error where its script cannot be written', async () => {
    const { stderr, code } = await finished(
      spawn('sh', ['-c', '"$@" > /dev/full', 'sh', process.execPath, BIN, 'autocomplete', 'fish'], {
        env: cleanEnv(newUser().env),
      }),
    );
    assert.match(stderr, /The output could not be written to stdout \(ENOSPC\)/);
    assert.equal(code, 1);
  });
});

describe('completion and the other commands', () => {
  it('do not need each other: commands start where completion is not installed', async () => {
    const root = tempFolder();
    for (const part of ['bin', 'dist', 'package.json', 'oclif.manifest.json'])
      cpSync(join(ROOT, part), join(root, part), { recursive: true });
    rmSync(join(root, 'dist/cli/completion'), { recursive: true });
    mkdirSync(join(root, 'node_modules/@oclif'), { recursive: true });
    const all = readdirSync(join(ROOT, 'node_modules')).filter((name) => !name.startsWith('.') && name !== '@oclif');
    for (const name of [...all, '@oclif/core', '@oclif/plugin-help'])
      symlinkSync(join(ROOT, 'node_modules', name), join(root, 'node_modules', name));

    const run = (...args: string[]): Promise<Finished> =>
      finished(
        spawn(process.execPath, [join(root, 'bin/run.js'), ...args], { env: cleanEnv({ XDG_DATA_HOME: root }) }),
      );
    const create = await run('apikey', '--create', '--name', 'A key', '--roles', 'GUEST');
    assert.match(create.stderr, /^Created API key "A key" .*\n$/);
    assert.equal(create.code, 0);
    const others = await Promise.all([
      run('apikey', 'list', '--json'),
      run('apikey', '--help'),
      run('serve', '--help'),
    ]);
    assert.deepEqual(
      others.map(({ stderr, code }) => [stderr, code]),
      others.map(() => ['', 0]),
    );
    // So that the above means something: what looks for the plugin says that it is not there.
    assert.match((await run('--help')).stderr, /plugin-autocomplete/);
  });
});
