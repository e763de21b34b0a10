import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { ACTIONS, RESOURCES, ROLES } from '../../../src/keys/permissions/catalog.ts';
import { BIN, cleanEnv, type Finished, finished, ROOT, runCli } from '../../support/process.ts';
import { TerminalSession } from '../../support/pty.ts';
import { tempFolder } from '../../support/temp.ts';

const PAGE = readFileSync(join(ROOT, 'docs/completion.md'), 'utf8');
const { commands: COMMANDS } = JSON.parse(readFileSync(join(ROOT, 'oclif.manifest.json'), 'utf8')) as {
  commands: Record<string, { summary: string; flags: Record<string, object> }>;
};
const commandsWith = (flag: string) => Object.values(COMMANDS).filter(({ flags }) => flag in flags);

/** A user with a home folder of their own, who has `svc-api` on the path. */
interface User {
  home: string;
  env: NodeJS.ProcessEnv;
}

function newUser(): User {
  const home = tempFolder();
  const bin = tempFolder();
  symlinkSync(BIN, join(bin, 'svc-api'));
  const path = [bin, dirname(process.execPath), process.env['PATH']].join(delimiter);
  return {
    home,
    env: { HOME: home, PATH: path, XDG_CACHE_HOME: undefined, XDG_CONFIG_HOME: undefined, SHELL: '/bin/bash' },
  };
}

/** Runs the page's block for a shell, as that user. */
async function paste(block: string, { env }: User): Promise<void> {
  const [, script] = new RegExp(`^\`\`\`${block}\\n(.*?)^\`\`\`$`, 'ms').exec(PAGE)!;
  const { code, stderr } = await finished(spawn('bash', ['-ec', script!], { env: cleanEnv(env) }));
  assert.equal(code, 0, stderr);
}

/** Lets a shell read its script, on machines that have that shell. */
async function checkSyntax(shell: string, args: readonly string[]): Promise<void> {
  const child = await finished(spawn(shell, args)).catch((error: NodeJS.ErrnoException) => {
    assert.equal(error.code, 'ENOENT');
  });
  if (child) assert.deepEqual(child, { stdout: '', stderr: '', code: 0, signal: null });
}

/** The paths of all files below a folder, hidden ones included. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted();
}

describe('completion in bash', () => {
  let user: User;
  before(async () => {
    user = newUser();
    await paste('bash', user);
    // What the shell makes of a line is printed, and not run.
    const rc = join(user.home, '.bashrc');
    const prints = `svc-api() { printf '(%s)' "$@"; echo; }; PS1='ready> '; bind 'set bell-style none'\n`;
    writeFileSync(rc, readFileSync(rc, 'utf8') + prints);
  });

  /** Types lines, each with its tabs, and gives back the words of the command that each became. */
  async function typed(lines: readonly string[], setup = ''): Promise<string[]> {
    const shell = new TerminalSession('bash', ['--noprofile', '-i'], user.env);
    try {
      await shell.answer('ready> ', `${setup}:\r`);
      const words = [];
      for (const line of lines) {
        await shell.see('ready> ');
        const from = shell.screen.length;
        shell.type(`${line}\r`);
        await shell.see(')\n');
        words.push(/^\(.*\)$/m.exec(shell.screen.slice(from))![0]);
      }
      return words;
    } finally {
      shell.close();
    }
  }

  const ROWS: readonly (readonly [string, string])[] = [
    ['svc-api api\tcr\t', '(apikey)(create)'],
    ['svc-api apikey cr\t', '(apikey)(create)'],
    ['svc-api ser\t', '(serve)'],
    ['svc-api apikey --ro\t', '(apikey)(--roles)'],
    ['svc-api apikey create --ro\t', '(apikey)(create)(--roles)'],
    ['svc-api apikey --create --name "A key" --ro\t', '(apikey)(--create)(--name)(A key)(--roles)'],
    ['svc-api apikey list --json --st\tdis\t', '(apikey)(list)(--json)(--status)(disabled)'],
    ['svc-api apikey --roles AD\t', '(apikey)(--roles)(ADMIN)'],
    ['svc-api apikey --roles=AD\t', '(apikey)(--roles=ADMIN)'],
    ['svc-api apikey --roles ADMIN,VI\t', '(apikey)(--roles)(ADMIN,VIEWER)'],
    ['svc-api apikey update --permissions DOC\tR\tA\t', '(apikey)(update)(--permissions)(DOCKER:READ_ANY)'],
    ['svc-api apikey --permissions DOCKER:RE\tO\t', '(apikey)(--permissions)(DOCKER:READ_OWN)'],
    ['svc-api apikey --permissions=DOCKER:DELETE_A\t', '(apikey)(--permissions=DOCKER:DELETE_ANY)'],
    [
      'svc-api apikey --permissions DOCKER:READ_ANY,VM\tD\tO\t',
      '(apikey)(--permissions)(DOCKER:READ_ANY,VMS:DELETE_OWN)',
    ],
    ['svc-api apikey --permissions DOCKER:\tU\tO\t', '(apikey)(--permissions)(DOCKER:UPDATE_OWN)'],
    ['svc-api serve --database $HOME/.bash\t', '(serve)(--database)(HOME/.bashrc)'],
    // Nothing is made up where a value is free text.
    ['svc-api apikey --name cr\t', '(apikey)(--name)(cr)'],
    ['svc-api apikey list --status active,d\t', '(apikey)(list)(--status)(active,d)'],
  ];

  for (const [setup, name] of [
    ['', 'as the shell is'],
    ['COMP_WORDBREAKS=${COMP_WORDBREAKS//:}; ', 'where words do not end at a colon'],
  ] as const) {
    it(`knows commands, flags and values, ${name}`, async () => {
      const words = await typed(
        ROWS.map(([line]) => line),
        setup,
      );
      assert.deepEqual(
        words.map((text) => text.replace(user.home, 'HOME')),
        ROWS.map(([, result]) => result),
      );
    });
  }

  it('stays as it is when its script is asked for again', async () => {
    const script = join(user.home, '.cache/svc-api/autocomplete/functions/bash/svc-api.bash');
    const before = readFileSync(script, 'utf8');
    assert.equal((await runCli(['autocomplete', 'script', 'bash'], { env: user.env })).code, 0);
    assert.equal(readFileSync(script, 'utf8'), before);
  });
});

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
    assert.deepEqual(readdirSync(user.home), []);
  });

  it('refuses a shell that it does not know', async () => {
    const { code, stderr } = await runCli(['autocomplete', 'tcsh'], { env: newUser().env });
    assert.equal(code, 2);
    assert.match(stderr, /Expected tcsh to be one of/);
  });
});

describe('completion in zsh', () => {
  it('offers the values of flags where the plugin would offer files', async () => {
    const user = newUser();
    await paste('zsh', user);
    assert.match(readFileSync(join(user.home, '.zshrc'), 'utf8'), /^SVC_API_AC_ZSH_SETUP_PATH=.* && source /m);
    const path = join(user.home, '.cache/svc-api/autocomplete/functions/zsh/_svc-api');
    const script = readFileSync(path, 'utf8');
    assert.match(script, /^#compdef svc-api\n/);
    for (const values of [ROLES, RESOURCES, ACTIONS, ['active', 'disabled', 'expired']]) {
      assert.ok(script.includes(` - ${values.join(' ')}\n`), values[0]);
    }
    const actions = Array.from(
      script.matchAll(/^(?:"\*")?--(roles|permissions|status)"\[.*\]:(.*)" \\$/gm),
      ([, flag, action]) => [flag, action],
    );
    assert.equal(actions.filter(([flag]) => flag === 'permissions').length, commandsWith('permissions').length);
    assert.equal(actions.filter(([flag]) => flag === 'roles').length, commandsWith('roles').length);
    const expected = {
      roles: 'roles:_svc-api_roles',
      permissions: 'permissions:_svc-api_permissions',
      status: 'status:_svc-api_statuses',
    };
    assert.deepEqual(Object.fromEntries(actions), expected);
    for (const name of Object.values(expected)) assert.ok(script.includes(`\n${name.split(':')[1]}() {\n`), name);
    assert.equal((await runCli(['autocomplete', 'script', 'zsh'], { env: user.env })).code, 0);
    assert.equal(readFileSync(path, 'utf8'), script);
    await checkSyntax('zsh', ['-n', path]);
  });
});

describe('completion in fish', () => {
  it('knows every command, flag and value', async () => {
    const user = newUser();
    await paste('fish', user);
    const path = '.config/fish/completions/svc-api.fish';
    assert.deepEqual(filesIn(user.home), [path]);
    const script = readFileSync(join(user.home, path), 'utf8');
    for (const [id, { summary, flags }] of Object.entries(COMMANDS)) {
      const words = id.split(':');
      const start = (before: string[]) => `\ncomplete -c svc-api -n '${['__svc_api_command', ...before].join(' ')}' `;
      assert.ok(script.includes(`${start(words.slice(0, -1))}-a ${words.at(-1)} -d '${summary}'\n`), id);
      for (const flag of Object.keys(flags)) {
        const lines = [`${start(words)}-l ${flag} `, `${start(words)}-s ${flag[0]} -l ${flag} `];
        assert.ok(
          lines.some((line) => script.includes(line)),
          `${id} ${flag}`,
        );
      }
    }
    assert.match(script, / -a help -d 'Display help for svc-api\.'\n/);
    assert.match(script, / -l database -r -F -d '.* in the user\\'s data folder\.'\n/);
    assert.match(script, / -l roles -x -a '\(__svc_api_roles\)' /);
    assert.match(script, / -l permissions -x -a '\(__svc_api_permissions\)' /);
    assert.match(script, / -l status -x -a 'active disabled expired' /);
    assert.ok(script.includes(`\n    __svc_api_list ${ROLES.join(' ')}\n`));
    assert.ok(script.includes(`\n    __svc_api_list {${RESOURCES.join(',')}}:{${ACTIONS.join(',')}}\n`));
    await checkSyntax('fish', ['--no-execute', join(user.home, path)]);
  });

  it('is what a user of fish gets who names no shell', async () => {
    const { env } = newUser();
    const [named, unnamed] = await Promise.all([
      runCli(['autocomplete', 'fish'], { env }),
      runCli(['autocomplete'], { env: { ...env, SHELL: '/usr/bin/fish' } }),
    ]);
    assert.match(named.stdout, /^# Completion of svc-api for fish/);
    assert.deepEqual(unnamed, named);
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
