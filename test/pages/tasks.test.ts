import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../support/cli.ts';
import { pathWithCli, runBlock } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

/** The commands in the second column. */
const COMMANDS = readFileSync(join(ROOT, 'docs/tour.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .flatMap((line) => Array.from(line.split('|')[2]!.matchAll(/`([^`]+)`/g), ([, command]) => command!))
  .map((command) => (command.startsWith('svc-api') ? command : `svc-api apikey ${command}`));

/**
 * Commands that keep running, that need an application, a receiver or another machine, or that only describe a set-up.
 */
const OTHERS = [
  'svc-api serve',
  'svc-api serve --port 8080 --workers 4',
  'svc-api apikey log --follow',
  'svc-api requests approve WDJB-MJHT',
  'svc-api login --server https://keys.example.org',
  'svc-api apikey list --server https://keys.example.org',
  'svc-api guard http://127.0.0.1:3000 --permission DASHBOARD:READ_ANY',
  'svc-api notices test',
];

/** With routes for the commands about them, and without a policy. */
const CONFIG = readFileSync(join(ROOT, 'examples/svc-api.yaml'), 'utf8').replace(/^policy:\n(?: .*\n)+/m, '');

/** Exit codes other than 0. */
const ANSWERS: Record<string, number> = { scan: 3, explain: 4 };

describe('docs/tour.md, on which command does what', () => {
  it('has a command for each task', () => {
    assert.ok(COMMANDS.length > 30);
    assert.deepEqual(
      OTHERS.filter((command) => !COMMANDS.includes(command)),
      [],
    );
  });

  for (const command of COMMANDS.filter((each) => !OTHERS.includes(each))) {
    it(`has one that works: ${command}`, async () => {
      const folder = tempFolder();
      const cli = testCli();
      const run = (script: string, input = '') =>
        runBlock(
          script,
          folder,
          { PATH: pathOf, SVC_API_DATABASE: cli.database, SVC_API_CONFIG: join(folder, 'svc-api.yaml') },
          input,
        );
      const pathOf = pathWithCli(folder);
      const isNew = / (create "|import)/.test(command) && !command.includes('--overwrite');
      const { key } = isNew ? { key: '' } : await cli.given('CI deploy');
      if (!isNew) await cli.given('Night job');
      if (/--finish|--rollback/.test(command)) await cli.run(['apikey', 'rotate', 'CI deploy', '--grace', '1h']);
      mkdirSync(join(folder, 'project'));
      const put = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o755 });
      put('report.sh', '#!/bin/sh\ntest -n "$API_KEY"\n');
      put('keys.jsonl', '{"name":"CI","secret":"sk_live_4eC39HqLyjWDarjtT1zdp7dc","roles":["VIEWER"]}\n');
      put('leak.txt', key);
      put('report.json', '[]');
      // Others must not be able to change it.
      writeFileSync(join(folder, 'svc-api.yaml'), CONFIG, { mode: 0o600 });
      if (command.startsWith('svc-api restore')) await cli.run(['backup', join(folder, 'keys.sqlite')]);
      cpSync(join(ROOT, 'examples/keys.yaml'), join(folder, 'keys.yaml'));
      execFileSync('git', ['init', '--quiet'], { cwd: folder });

      // There is no PostgreSQL server. What would be prompted for is given as flags, as is the folder for secrets.
      const typed = command
        .replace(/postgres:\/\/\S+/, tempStore())
        .replace(/--prune\b.*/, '$& --yes')
        .replace(/--undo-changes$/, '$& --yes')
        .replace(/apply .*/, '$& --secrets-dir secrets');
      const { code, stdout, stderr } = await run(typed, `${key}\n`);
      const verb = command.replace(/^svc-api (apikey )?/, '').split(' ', 1)[0]!;
      const wanted = key === '' || !(verb in ANSWERS) ? [0] : [0, ANSWERS[verb]];
      assert.ok(wanted.includes(code!), `${code}: ${stdout}${stderr}`);
    });
  }
});
