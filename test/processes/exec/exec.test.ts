import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { SECRET, testCli } from '../../support/cli.ts';
import { errorText } from '../../support/errors.ts';
import { endExecs, execArgs, SAY_WHO, startExec } from '../../support/exec.ts';
import { BIN, cleanEnv, type Finished, finished, ROOT, runCli, startCli } from '../../support/process.ts';
import { cliOnTerminal } from '../../support/pty.ts';
import { isAccepted, keysIn } from '../../support/stored.ts';
import { tempFolder, tempStore } from '../../support/temp.ts';

const node = process.execPath;

/** Runs `apikey exec` with a role in a process, whose streams the command inherits. */
function exec(database: string, command: readonly string[], flags?: readonly string[]): Promise<Finished> {
  return testCli(database).runProcess(execArgs(command, flags));
}

/** The same in this process, for commands without output. */
function execHere(database: string, command: readonly string[], flags?: readonly string[]): Promise<Finished> {
  return testCli(database).run(execArgs(command, flags));
}

/** A file of /proc; empty if the process has ended or belongs to another user. */
function proc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch {
    return '';
  }
}

describe('apikey exec', () => {
  afterEach(endExecs);
  let database: string;
  beforeEach(() => {
    database = tempStore();
  });

  it('has a key while the command runs, and none afterwards', async () => {
    const running = await startExec(database, ['sh', '-c', `${SAY_WHO}; read line`]);
    assert.match(running.secret, SECRET);
    assert.ok(await isAccepted(database, running.secret));
    running.process.stdin!.end('\n');
    assert.deepEqual((await running.ended).code, 0);
    assert.equal(await isAccepted(database, running.secret), false);
    assert.deepEqual(await keysIn(database), []);
  });

  it("has the secret in the command's environment, and in no process's arguments nor in its own environment", async () => {
    const running = await startExec(database, ['sh', '-c', `${SAY_WHO}; read line`]);
    const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    const commandLines = all.map((pid) => proc(`${pid}/cmdline`)).join('');
    assert.ok(commandLines.includes(`${BIN}\0apikey\0exec`), 'its own is among them');
    assert.equal(commandLines.includes(running.secret.slice(17)), false);
    assert.ok(proc(`${running.process.pid}/environ`).includes(database));
    assert.equal(proc(`${running.process.pid}/environ`).includes(running.secret.slice(17)), false);
    assert.ok(proc(`${running.pid}/environ`).split('\0').includes(`API_KEY=${running.secret}`));
    running.process.stdin!.end('\n');
    const { stdout, stderr } = await running.ended;
    assert.deepEqual([stdout, stderr], [`${running.pid} ${running.secret}\n`, '']);
  });

  it('adds one variable to the environment, under the name of --env, and leaves the others', async () => {
    const variables = async (args: readonly string[]) => {
      const { stdout } = await finished(
        spawn(args[0]!, args.slice(1), { env: { PATH: process.env['PATH'], SVC_API_DATABASE: database, A: '1' } }),
      );
      return stdout.split('\0').toSorted();
    };
    const print = [
      node,
      '-e',
      'process.stdout.write(Object.entries(process.env).map((pair) => pair.join("=")).join("\\0"))',
    ];
    const plain = await variables(print);
    for (const [flags, name] of [
      [[], 'API_KEY'],
      [['--env', '_Svc_Token2'], '_Svc_Token2'],
      [['--env', 'A'], 'A'],
    ] as const) {
      const given = await variables([node, BIN, 'apikey', 'exec', '--roles', 'GUEST', ...flags, '--', ...print]);
      const added = given.filter((pair) => !plain.includes(pair));
      assert.equal(added.length, 1);
      assert.match(added[0]!, new RegExp(`^${name}=svc_\\w{62}$`));
      assert.deepEqual(
        given.filter((pair) => !added.includes(pair)),
        plain.filter((pair) => !pair.startsWith(`${name}=`)),
      );
    }
  });

  it('holds the store neither open nor locked while the command runs', async () => {
    const running = await startExec(database, ['sh', '-c', `${SAY_WHO}; read line`]);
    for (const pid of [running.process.pid, running.pid]) {
      const open = globSync(`/proc/${pid}/fd/*`).flatMap(targetOf);
      assert.ok(open.length >= 3);
      assert.deepEqual(
        open.filter((path) => path.startsWith(database)),
        [],
      );
    }
    await testCli(database).given('Meanwhile');
    running.process.stdin!.end('\n');
    assert.equal((await running.ended).code, 0);
    assert.deepEqual(
      (await keysIn(database)).map(({ name }) => name),
      ['Meanwhile'],
    );
  });

  it('gives the command its arguments unchanged, whatever they look like', async () => {
    const args = ['--json', '--help', '-h', '', 'a b', '--', '--', 'a b', '$API_KEY', '--roles=ADMIN', 'exec', 'é\n'];
    const { stdout, stderr, code } = await exec(database, [
      node,
      '-p',
      'JSON.stringify(process.argv.slice(1))',
      '--',
      ...args,
    ]);
    assert.deepEqual([JSON.parse(stdout), stderr, code], [args, '', 0]);
    // These look like our own flags and commands.
    assert.equal((await exec(database, ['echo', '--version', 'list'])).stdout, '--version list\n');
  });

  it('takes its flags in any order', async () => {
    for (const flags of [
      ['--env', 'KEY', '--database', database, '--roles', 'GUEST', '--ttl', '1m'],
      ['--ttl=1m', '--roles=guest', `--database=${database}`, '--env=KEY'],
      ['--permissions', 'docker:read_any', '--env', 'KEY', '--database', database],
    ]) {
      const { stdout, code } = await runCli(['apikey', 'exec', ...flags, '--', 'sh', '-c', 'echo $KEY']);
      assert.match(stdout, /^svc_\w+\n$/);
      assert.equal(code, 0);
    }
    assert.deepEqual(await keysIn(database), []);
  });

  it('makes a key that names its purpose and expires after ten minutes', async () => {
    const running = await startExec(database, ['/bin/sh', '-c', `${SAY_WHO}; read line # --token hidden`]);
    const [key] = await keysIn(database);
    running.process.stdin!.end('\n');
    await running.ended;
    assert.match(key!.name, /^exec \d{8} \d{6} [0-9a-f]{6}$/);
    assert.equal(key!.description, 'Temporary, for the command "sh". Deleted when it ends.');
    assert.equal(key!.expiresAt! - key!.createdAt, 600_000);
    assert.deepEqual([key!.roles, key!.permissions, key!.createdBy], [['VIEWER'], [], null]);
  });

  it('makes the key that the flags describe', async () => {
    const flags = ['--name', 'Report', '--ttl', '90s', '--permissions', 'DOCKER:READ_ANY'];
    const running = await startExec(database, ['sh', '-c', `${SAY_WHO}; read line`], { flags });
    const [key] = await keysIn(database);
    running.process.stdin!.end('\n');
    await running.ended;
    assert.deepEqual(
      [key!.name, key!.permissions, key!.expiresAt! - key!.createdAt],
      ['Report', ['DOCKER:READ_ANY'], 90_000],
    );
  });

  it('replaces no key', async () => {
    const cli = testCli(database);
    const { id } = await cli.given('Report');
    assert.deepEqual(await execHere(database, ['touch', 'ran'], ['--name', 'Report']), {
      stdout: '',
      stderr: errorText('NAME_TAKEN', 'An API key named "Report" already exists. Choose another name.'),
      code: 1,
      signal: null,
    });
    assert.deepEqual(
      (await keysIn(database)).map((key) => key.id),
      [id],
    );
  });

  it('deletes the keys that were created with its key', async () => {
    const script = `
      const { openKeys } = await import(${JSON.stringify(join(ROOT, 'dist/index.js'))});
      const keys = await openKeys();
      const { principal } = await keys.check({ secret: process.env.API_KEY });
      await keys.create({ name: 'Child', roles: ['GUEST'] }, { actor: principal });
      await keys.close();`;
    const { stderr, code } = await exec(database, [node, '--input-type=module', '-e', script], ['--roles', 'ADMIN']);
    assert.deepEqual([stderr, code], ['', 0]);
    assert.deepEqual(await keysIn(database), []);
  });

  it('can run in itself', async () => {
    const inner = [
      node,
      BIN,
      'apikey',
      'exec',
      '--roles',
      'GUEST',
      '--env',
      'INNER',
      '--',
      'sh',
      '-c',
      'echo "$API_KEY $INNER"; exit 9',
    ];
    const { stdout, stderr, code } = await exec(database, inner);
    const [outer, own] = stdout.trim().split(' ');
    assert.match(outer!, SECRET);
    assert.match(own!, SECRET);
    assert.notEqual(outer, own);
    assert.deepEqual([stderr, code], ['', 9]);
    assert.deepEqual(await keysIn(database), []);
  });

  it('runs in another CLI, under its name', async () => {
    const acme = hostCli();
    const run = (...args: string[]) =>
      finished(
        spawn(node, [acme, 'apikey', 'exec', ...args], {
          env: cleanEnv({ SVC_API_DATABASE: database }),
          stdio: ['ignore', 'pipe', 'pipe'],
        }),
      );
    const { stdout, stderr, code } = await run('--roles', 'GUEST', '--', 'sh', '-c', 'echo $API_KEY; exit 5');
    assert.match(stdout, /^svc_\w+\n$/);
    assert.deepEqual([stderr, code], ['', 5]);
    assert.match((await run('--roles', 'GUEST')).stderr, /as in: acme apikey exec --roles VIEWER -- /);
    assert.deepEqual(await keysIn(database), []);
  });
});

describe('the streams of apikey exec', () => {
  it('are those of the command, byte for byte', async () => {
    const child = startCli(execArgs(['bash', '-c', 'tee >(cat >&2)']), {
      env: { SVC_API_DATABASE: tempStore() },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const bytes = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)), randomBytes(300_000)]);
    child.stdin!.end(bytes);
    const [stdout, stderr, [code]] = await Promise.all([
      buffer(child.stdout!),
      buffer(child.stderr!),
      once(child, 'exit'),
    ]);
    assert.ok(stdout.equals(bytes) && stderr.equals(bytes));
    assert.equal(code, 0);
  });

  it('are the same open files, in the same mode', async () => {
    const database = tempStore();
    const show =
      'readlink /proc/self/fd/0 /dev/fd/1 /dev/fd/2; grep flags /proc/self/fdinfo/0 /proc/self/fdinfo/1 /proc/self/fdinfo/2';
    const file = join(tempFolder(), 'out');
    const script = `"$@" < ${BIN} 2>> ${file} | cat; echo | "$@" 2>> ${file} | cat`;
    const run = (...command: string[]) =>
      finished(spawn('bash', ['-c', script, 'bash', ...command], { env: cleanEnv({ SVC_API_DATABASE: database }) }));
    const steady = (text: string) => text.replaceAll(/pipe:\[\d+\]/g, 'pipe');
    const plain = await run('sh', '-c', show);
    const within = await run(node, BIN, ...execArgs(['sh', '-c', show]));
    assert.match(plain.stdout, /\/bin\/run\.js\n.*\n.*\/out\n/);
    assert.deepEqual(steady(within.stdout), steady(plain.stdout));
  });

  it('are the terminal where there is one', async () => {
    const args = execArgs(['sh', '-c', 'test -t 0 && test -t 1 && test -t 2 && echo all']);
    const terminal = cliOnTerminal(args, { SVC_API_DATABASE: tempStore() });
    assert.equal(await terminal.end(), 0);
    assert.equal(terminal.screen, 'all\n');
  });

  it('may end early, which ends the command as it does at a shell', async () => {
    const database = tempStore();
    const script = 'set -o pipefail; "$@" | head -n 1';
    const command = [node, BIN, ...execArgs(['yes'])];
    const child = spawn('bash', ['-c', script, 'bash', ...command], { env: cleanEnv({ SVC_API_DATABASE: database }) });
    assert.deepEqual(await finished(child), { stdout: 'y\n', stderr: '', code: 141, signal: null });
    assert.deepEqual(await keysIn(database), []);
  });
});

describe('the exit code of apikey exec', () => {
  const script = join(tempFolder(), 'script');
  writeFileSync(script, 'echo ran');
  for (const [what, command, expected, stderr] of [
    ['is that of the command', ['sh', '-c', 'exit 3'], 3, ''],
    ['may be as high as can be', ['sh', '-c', 'exit 255'], 255, ''],
    ['is 128 and the signal that ended the command', ['sh', '-c', 'kill -KILL $$'], 137, ''],
    ['is so for a signal that this process could take', ['sh', '-c', 'kill -TERM $$'], 143, ''],
    [
      'is 127 where the command is not found',
      ['no-such-command', 'x'],
      127,
      errorText('COMMAND_NOT_FOUND', 'The command "no-such-command" was not found. Check its name, and PATH.'),
    ],
    [
      'is 126 where the command cannot be run',
      [script],
      126,
      errorText(
        'COMMAND_NOT_RUN',
        `The command "${script}" could not be run: permission denied, or it is not executable. Make it executable, or name the program that runs it.`,
      ),
    ],
    [
      'is 126 where its path leads through a file',
      [`${script}/x`],
      126,
      errorText('COMMAND_NOT_RUN', `The command "${script}/x" could not be run: ENOTDIR. Check its path.`),
    ],
  ] as const) {
    it(`${what}, and no key is left`, async () => {
      const database = tempStore();
      assert.deepEqual(await execHere(database, command), { stdout: '', stderr, code: expected, signal: null });
      assert.deepEqual(await keysIn(database), []);
    });
  }
});

describe('apikey exec that is used wrongly', () => {
  const folder = tempFolder();
  const touch = ['--', 'touch', join(folder, 'ran')];
  for (const [what, args, message] of [
    [
      'no command',
      ['--roles', 'VIEWER'],
      /^Error: The command to run is missing\. Put it after --, as in: svc-api apikey exec --roles VIEWER -- /,
    ],
    ['no command after --', ['--roles', 'VIEWER', '--'], /^Error: The command to run is missing\./],
    ['an empty command', ['--roles', 'VIEWER', '--', ''], /^Error: The command to run is missing\./],
    [
      'a command without --',
      ['--roles', 'VIEWER', 'touch', join(folder, 'ran')],
      /^Error: The command to run is missing\. Put it after --/,
    ],
    [
      'words before --',
      ['--roles', 'VIEWER', 'x', ...touch],
      /^Error: "x" comes before --, where only flags are allowed\. Put it after --\.\nCode: USAGE\n/,
    ],
    [
      'no grants',
      touch,
      /^Error: An API key needs at least one role or permission\. Pass --roles, --permissions or both\.\nCode: NO_GRANTS\n/,
    ],
    ['an unknown role', ['--roles', 'BOSS', ...touch], /^Error: "BOSS" is not a role\. /],
    ['an unknown permission', ['--permissions', 'DOCKER:X', ...touch], /^Error: .*"DOCKER:X"/],
    [
      'no variable name',
      ['--roles', 'VIEWER', '--env', '1-A', ...touch],
      /^Error: --env is "1-A", which is not a valid name of an environment variable\. Use /,
    ],
    [
      'an empty variable name',
      ['--roles', 'VIEWER', '--env', '', ...touch],
      /^Error: --env is "", which is not a valid name/,
    ],
    ['no duration', ['--roles', 'VIEWER', '--ttl', 'soon', ...touch], /^Error: "soon" is not a duration\. /],
    ['a duration of nothing', ['--roles', 'VIEWER', '--ttl', '0s', ...touch], /^Error: "0s" is not a duration\. /],
    [
      'a name that breaks the rule',
      ['--roles', 'VIEWER', '--name', 'a-b', ...touch],
      /^Error: The name may only contain /,
    ],
    [
      'several issues',
      ['--env', '-', '--ttl', 'x', ...touch],
      /^Error: --env is .*\n {7}"x" is not a duration.*\n {7}An API key needs /,
    ],
  ] as const) {
    it(`reports it, runs nothing and makes no store: ${what}`, async () => {
      const database = tempStore();
      const { stdout, stderr, code } = await testCli(database).run(['apikey', 'exec', ...args]);
      assert.equal(stdout, '');
      assert.match(stderr, message);
      assert.equal(code, 2);
      assert.equal(existsSync(join(folder, 'ran')), false);
      assert.equal(existsSync(database), false);
    });
  }

  it('refuses --json, whose object would stand in the output of the command, in that form', async () => {
    const { stdout, stderr, code } = await testCli().run(['apikey', 'exec', '--roles', 'VIEWER', '--json', ...touch]);
    const document = { error: 'Unknown flag: --json. Leave it out.', code: 'USAGE' };
    assert.deepEqual([JSON.parse(stdout), stderr, code], [document, '', 2]);
    assert.equal(existsSync(join(folder, 'ran')), false);
  });

  it('runs nothing where the store cannot be used', async () => {
    const { stderr, code } = await execHere(join(BIN, 'keys.sqlite'), touch.slice(1));
    assert.match(stderr, /^Error: The key store .* a part of its path is not a folder/);
    assert.equal(code, 1);
    assert.equal(existsSync(join(folder, 'ran')), false);
  });
});

describe('a temporary key that cannot be deleted', () => {
  it('is reported, with the time at which it expires, and the exit code is not 0', async () => {
    for (const [end, expected] of [
      ['exit 0', 1],
      ['exit 6', 6],
    ] as const) {
      const database = tempStore();
      const script = `mv "$SVC_API_DATABASE" "$SVC_API_DATABASE.old"; ${end}`;
      const { stdout, stderr, code } = await execHere(database, ['sh', '-c', script]);
      assert.match(
        stderr,
        /^Error: The temporary key "exec [\d a-f]+" could not be deleted \(STORE_UNAVAILABLE\): The key store \S+ does not exist\. .* It expires at \S+Z\.\n$/,
      );
      assert.deepEqual([stdout, code], ['', expected]);
      assert.equal(existsSync(database), false, 'no store is made anew');
    }
  });

  it('is no failure where it is gone already', async () => {
    const database = tempStore();
    const command = [node, BIN, 'apikey', 'delete', '--name', 'Mine'];
    assert.deepEqual(await exec(database, command, ['--name', 'Mine']), {
      stdout: 'Successfully deleted 1 API key\n',
      stderr: '',
      code: 0,
      signal: null,
    });
  });
});

/** Another CLI with this package as a plugin. @returns the path of its program */
function hostCli(): string {
  const folder = tempFolder();
  mkdirSync(join(folder, 'node_modules/@oclif'), { recursive: true });
  symlinkSync(ROOT, join(folder, 'node_modules/svc-api'));
  symlinkSync(join(ROOT, 'node_modules/@oclif/core'), join(folder, 'node_modules/@oclif/core'));
  const manifest = {
    name: 'acme',
    version: '1.0.0',
    type: 'module',
    oclif: { bin: 'acme', plugins: ['svc-api'], topicSeparator: ' ' },
  };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, dependencies: { 'svc-api': '*' } }));
  const program = join(folder, 'run.js');
  writeFileSync(program, `import { execute } from '@oclif/core';\nawait execute({ dir: import.meta.url });\n`);
  return program;
}

/** The target of a descriptor; empty if it was closed meanwhile. */
function targetOf(descriptor: string): string[] {
  try {
    return [readlinkSync(descriptor)];
  } catch {
    return [];
  }
}
