import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../support/cli.ts';
import { cleanEnv, finished, ROOT, runCli } from '../support/process.ts';
import { newUser, typedIn, type User } from '../support/shell.ts';
import { needsPrograms } from '../support/skip.ts';

const PAGE = readFileSync(join(ROOT, 'docs/installing.md'), 'utf8');

/** Lines as typed, with the completed words. */
const ROWS: readonly (readonly [string, string])[] = [
  ['svc-api api\tcr\t', '(apikey)(create)'],
  ['svc-api ser\t', '(serve)'],
  ['svc-api auto\t', '(autocomplete)'],
  ['svc-api help apikey sug\t', '(help)(apikey)(suggest)'],
  ['svc-api apikey --ro\t', '(apikey)(--roles)'],
  ['svc-api apikey --create --name "A key" --ro\t', '(apikey)(--create)(--name)(A key)(--roles)'],
  ['svc-api apikey list --json --stat\tdis\t', '(apikey)(list)(--json)(--status)(disabled)'],
  ['svc-api apikey --roles AD\t', '(apikey)(--roles)(ADMIN)'],
  ['svc-api apikey --roles=AD\t', '(apikey)(--roles=ADMIN)'],
  ['svc-api apikey --roles ADMIN,VI\t', '(apikey)(--roles)(ADMIN,VIEWER)'],
  ['svc-api apikey update --permissions DOC\tR\tA\t', '(apikey)(update)(--permissions)(DOCKER:READ_ANY)'],
  ['svc-api apikey --permissions=DOCKER:DELETE_A\t', '(apikey)(--permissions=DOCKER:DELETE_ANY)'],
  [
    'svc-api apikey --permissions DOCKER:READ_ANY,VM\tD\tO\t',
    '(apikey)(--permissions)(DOCKER:READ_ANY,VMS:DELETE_OWN)',
  ],
  // Names with spaces and non-Latin letters.
  ['svc-api apikey show CI\td\t', '(apikey)(show)(CI deploy)'],
  ['svc-api apikey show CI\\ d\t', '(apikey)(show)(CI deploy)'],
  ['svc-api apikey show "CI d\t', '(apikey)(show)(CI deploy)'],
  ["svc-api apikey show 'CI d\t--json", '(apikey)(show)(CI deploy)(--json)'],
  ['svc-api apikey show --name=Sch\t', '(apikey)(show)(--name=Schlüssel eins)'],
  ['svc-api apikey show --name "Sch\t --json', '(apikey)(show)(--name)(Schlüssel eins)(--json)'],
  ['svc-api apikey log --key 日\t', '(apikey)(log)(--key)(日本 語)'],
  ['svc-api apikey --delete --name bac\t', '(apikey)(--delete)(--name)(backup)'],
  // Files, where a command takes one.
  ['svc-api serve --database ~/pla\t', '(serve)(--database)(HOME/plain.yaml)'],
  ['svc-api serve --database=pla\t', '(serve)(--database=plain.yaml)'],
  ['svc-api apikey apply -f pla\t', '(apikey)(apply)(-f)(plain.yaml)'],
  ['svc-api apikey export --to pla\t', '(apikey)(export)(--to)(plain.yaml)'],
  ['svc-api apikey import pla\t', '(apikey)(import)(plain.yaml)'],
  ['svc-api apikey scan --revoke one\\ fi\t', '(apikey)(scan)(--revoke)(one file)'],
  ['svc-api apikey apply --secrets-dir one\t', '(apikey)(apply)(--secrets-dir)(one folder)'],
  // Nothing is completed elsewhere.
  ['svc-api apikey show pla\t', '(apikey)(show)(pla)'],
  ['svc-api apikey --name bac\t', '(apikey)(--name)(bac)'],
  ['svc-api apikey create --description pla\t', '(apikey)(create)(--description)(pla)'],
  ['svc-api apikey exec --roles ADMIN -- pla\t', '(apikey)(exec)(--roles)(ADMIN)(--)(pla)'],
];

/** Runs the page's block for a shell as a user. */
async function paste(block: string, { env }: User): Promise<void> {
  const [, script] = new RegExp(`^\`\`\`${block}\\n(.*?)^\`\`\`$`, 'ms').exec(PAGE)!;
  const { code, stderr } = await finished(spawn('bash', ['-ec', script!], { env: cleanEnv(env) }));
  assert.equal(code, 0, stderr);
}

for (const shell of ['bash', 'zsh', 'fish']) {
  describe(`completion in ${shell}`, () => {
    const cli = testCli();
    const user = newUser();
    user.env = { ...user.env, SVC_API_DATABASE: cli.database };
    before(async function () {
      needsPrograms(this, shell);
      for (const name of ['CI deploy', 'CI test', 'Schlüssel eins', '日本 語', 'backup']) await cli.given(name);
      mkdirSync(join(user.home, 'one folder'));
      for (const file of ['one file', 'plain.yaml']) writeFileSync(join(user.home, file), '');
      await paste(shell, user);
    });

    it('knows commands, flags, values, names and files', async () => {
      const words = await typedIn(
        shell,
        user,
        ROWS.map(([line]) => line),
      );
      assert.deepEqual(
        words.map((text) => text.replace('folder/)', 'folder)')),
        ROWS.map(([, result]) => result),
      );
    });

    it('takes names from the store that the line is about', async () => {
      const other = testCli();
      await other.given('Elsewhere');
      const lines = [
        `svc-api apikey show --database ${other.database} El\t`,
        `svc-api apikey show --database=${other.database} El\t`,
        `svc-api apikey show --database ${other.database} back\t`,
      ];
      if (shell !== 'bash') lines.push(`SVC_API_DATABASE=${other.database} svc-api apikey show El\t`);
      const words = await typedIn(shell, user, lines);
      assert.deepEqual(
        words.map((text) => /\((\w+)\)$/.exec(text)![1]),
        ['Elsewhere', 'Elsewhere', 'back', 'Elsewhere'].slice(0, lines.length),
      );
    });

    it('leaves nothing behind where there is no store', async () => {
      const database = join(user.home, 'none.sqlite');
      const words = await typedIn(shell, user, [`svc-api apikey show --database ${database} C\t`]);
      assert.deepEqual(words, ['(apikey)(show)(--database)(HOME/none.sqlite)(C)']);
    });
  });
}

describe('svc-api autocomplete without a shell', () => {
  it('prints the script for the shell of the user, and asks for one that it knows', async () => {
    const [named, unnamed, other] = await Promise.all([
      runCli(['autocomplete', 'fish']),
      runCli(['autocomplete'], { env: { SHELL: '/usr/bin/fish' } }),
      runCli(['autocomplete'], { env: { SHELL: '/bin/tcsh' } }),
    ]);
    assert.match(named.stdout, /^# Completion of svc-api for fish\n/);
    assert.deepEqual(unnamed, named);
    assert.match(other.stderr, /bash, zsh, fish/);
    assert.deepEqual([other.stdout, other.code], ['', 2]);
  });
});

describe('completion in bash, where words do not end at a colon', () => {
  it('completes lists of permissions', async () => {
    const user = newUser();
    await paste('bash', user);
    const rows = ROWS.filter(([line]) => line.includes('--permissions'));
    const words = await typedIn(
      'bash',
      user,
      rows.map(([line]) => line),
      { setup: 'COMP_WORDBREAKS=${COMP_WORDBREAKS//:}; ' },
    );
    assert.deepEqual(
      words,
      rows.map(([, result]) => result),
    );
  });
});
