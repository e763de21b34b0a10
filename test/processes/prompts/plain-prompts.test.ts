import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { SECRET, type TestCli, testCli } from '../../support/cli.ts';
import { openTestKeys } from '../../support/keys.ts';
import { BIN } from '../../support/process.ts';
import { KEYS, TerminalSession } from '../../support/pty.ts';
import { tempFolder } from '../../support/temp.ts';
import { keyNamed, namesIn } from '../../support/stored.ts';

const { enter, ctrlC, ctrlD } = KEYS;
const COLUMNS = 60;
const PLAIN = { SVC_API_PROMPTS: 'plain' };

describe('plain prompts', () => {
  let session: TerminalSession | undefined;
  afterEach(() => session?.close());

  /** Starts the CLI on a narrow terminal, by default an xterm. */
  function start(cli: TestCli, args: readonly string[], env: NodeJS.ProcessEnv = PLAIN): TerminalSession {
    const { TERM = 'xterm', ...others } = env;
    const program = ['-c', 'TERM=$1; shift; export TERM; exec "$@"', 'sh', TERM, process.execPath, BIN];
    const variables = { SVC_API_DATABASE: cli.database, ...others };
    return (session = new TerminalSession('/bin/sh', [...program, ...args], variables, { columns: COLUMNS }));
  }

  /** The output is plain text, with lines of whole words that fit. */
  function assertPlain({ raw, screen }: TerminalSession): void {
    assert.ok(!raw.includes('\u001b'), JSON.stringify(raw));
    const wide = screen.split('\n').filter((line) => line.length > COLUMNS && line.trim().includes(' '));
    assert.deepEqual(wide, []);
  }

  for (const [what, env] of [
    ['SVC_API_PROMPTS=plain', PLAIN],
    ['TERM=dumb', { TERM: 'dumb' }],
  ] as const)
    it(`ask for a key by numbers and lines with ${what}, and write no control sequence`, async () => {
      const cli = testCli();
      const terminal = start(cli, ['apikey', '--create'], env);
      await terminal.answer('Name: ', `my-key${enter}`);
      await terminal.see('found\n"-" (U+002D).\n');
      await terminal.answer('Name: ', `My key${enter}`);
      await terminal.answer('Description (optional): ', `For the pipeline${enter}`);
      await terminal.see('Roles (none, to choose permissions only)\n  1. CONNECT: Access');
      await terminal.see('\n  4. ADMIN: Full system access');
      await terminal.answer('Numbers, separated by commas; nothing for none: ', `5${enter}`);
      await terminal.see('5 is not in the list. Type a number from 1 to 4.');
      await terminal.answer('nothing for none: ', `2, 3${enter}`);
      await terminal.answer('nothing for all; or a text to search for: ', `dock${enter}`);
      await terminal.see('\n  1. DOCKER\n');
      await terminal.answer('nothing for all; or a text to search for: ', `1${enter}`);
      await terminal.see('Actions on DOCKER\n  1. CREATE_ANY\n');
      await terminal.answer('nothing for none: ', `1,3${enter}`);
      await terminal.see('Permissions: 2 permissions. Add another resource');
      await terminal.answer('nothing for all; or a text to search for: ', `docker${enter}`);
      await terminal.answer('nothing for all; or a text to search for: ', `1${enter}`);
      await terminal.answer('nothing for 1, 3, 0 for none: ', enter);
      await terminal.answer('nothing for all; or a text to search for: ', `1${enter}`);
      await terminal.see('Expires\n  1. in 30 days\n');
      await terminal.answer('Number: ', `5${enter}`);
      await terminal.answer('23:59:59Z): ', `x${enter}`);
      await terminal.answer('23:59:59Z): ', `1d${enter}`);
      assert.equal(await terminal.end(), 0);
      assertPlain(terminal);
      assert.ok(terminal.screen.split('\n').some((line) => SECRET.test(line)));
      const key = await keyNamed(cli.database, 'My key');
      assert.deepEqual(
        [key?.description, key?.roles, key?.permissions],
        ['For the pipeline', ['VIEWER', 'GUEST'], ['DOCKER:CREATE_ANY', 'DOCKER:READ_ANY']],
      );
    });

  it('list all again if a search found nothing', async () => {
    const cli = testCli();
    const terminal = start(cli, ['apikey', 'create', 'CI', '--description', '', '--expires-in', '1d']);
    await terminal.answer('nothing for none: ', `3${enter}`);
    await terminal.answer('nothing for all; or a text to search for: ', `done${enter}`);
    await terminal.see('Nothing matches.');
    await terminal.answer('nothing for all; or a text to search for: ', enter);
    await terminal.see('\n   1. Done\n');
    await terminal.answer('nothing for all; or a text to search for: ', `1${enter}`);
    assert.equal(await terminal.end(), 0);
    assertPlain(terminal);
    assert.deepEqual((await keyNamed(cli.database, 'CI'))?.roles, ['GUEST']);
  });

  it('ask before a key is replaced', async () => {
    const cli = testCli();
    const { id } = await cli.given('CI');
    const args = ['apikey', 'create', 'CI', '--roles', 'GUEST', '--description', '', '--expires-in', '1d'];
    const name = ['apikey', '--create', ...args.slice(3)];
    const terminal = start(cli, name);
    await terminal.answer('Name: ', `CI${enter}`);
    await terminal.answer('already exists. Replace it, and delete\nall keys that it created? (y/N) ', `maybe${enter}`);
    await terminal.see('Answer y for yes, or n for no.');
    await terminal.answer('(y/N) ', `Yes${enter}`);
    assert.equal(await terminal.end(), 0);
    assertPlain(terminal);
    assert.notEqual((await keyNamed(cli.database, 'CI'))?.id, id);
  });

  it('let keys be searched, and several be chosen and deleted', async () => {
    const cli = testCli();
    const { keys, store } = await openTestKeys({ asServer: true, database: cli.database });
    for (const name of ['First', 'Second', 'Third', 'Thirty']) await keys.create({ name, roles: ['GUEST'] }, OPERATOR);
    await store.close();
    const terminal = start(cli, ['apikey', 'delete']);
    await terminal.see('API keys to delete\n  1. ');
    await terminal.answer('or a text to\nsearch for: ', `nothing like it${enter}`);
    await terminal.see('Nothing matches.');
    await terminal.answer('search for: ', `1${enter}`);
    await terminal.see('There is nothing to choose.');
    await terminal.answer('search for: ', `thir${enter}`);
    await terminal.see('Third (GUEST');
    await terminal.answer('search for: ', `1 2,2${enter}`);
    await terminal.answer('Delete these 2 API keys', `y${enter}`);
    assert.equal(await terminal.end(), 0);
    assertPlain(terminal);
    assert.deepEqual(await namesIn(cli.database), ['First', 'Second']);
    const none = start(cli, ['apikey', 'delete']);
    await none.answer('search for: ', enter);
    assert.equal(await none.end(), 0);
    assert.equal((await namesIn(cli.database)).length, 2);
  });

  it('do not echo a secret', async () => {
    const cli = testCli();
    const { key: secret } = await cli.given('CI');
    for (const env of [PLAIN, { TERM: 'dumb' }]) {
      const terminal = start(cli, ['apikey', 'verify', '-'], env);
      await terminal.answer('Secret (not shown): ', `${secret}${enter}`);
      assert.equal(await terminal.end(), 0);
      assert.ok(!terminal.raw.includes('\u001b'));
      assert.match(terminal.screen, /CI/);
      assert.ok(!terminal.screen.includes(secret.slice(-20)), terminal.screen);
    }
  });

  it('end by Ctrl-C and by Ctrl-D: one short line, exit 130, nothing changed', async () => {
    const cli = testCli();
    await cli.given('CI');
    for (const key of [ctrlC, ctrlD])
      for (const [args, question] of [
        [['apikey', 'create'], 'Name: '],
        [['apikey', 'create', 'A', '--description', ''], 'nothing for none: '],
        [['apikey', 'delete'], 'search for: '],
        [['apikey', 'log', '--prune', '--until', '2099-01-01'], '(y/N) '],
        [['apikey', 'verify', '-'], 'Secret (not shown): '],
      ] as const) {
        const terminal = start(cli, args);
        await terminal.see(question);
        const shown = terminal.screen.length;
        terminal.type(key);
        assert.equal(await terminal.end(), 130, args.join(' '));
        assert.match(terminal.screen.slice(shown), /^(\^[CD])?[\b ]*\nCancelled: nothing was changed\.\n$/);
        assertPlain(terminal);
      }
    assert.deepEqual(await namesIn(cli.database), ['CI']);
  });

  it('are not taken for lists that can be drawn where that is asked for', async () => {
    const terminal = start(testCli(), ['apikey', 'create'], { TERM: 'dumb', SVC_API_PROMPTS: 'rich' });
    await terminal.answer('? Name', ctrlC);
    assert.equal(await terminal.end(), 130);
  });

  it('refuse another word in SVC_API_PROMPTS', async () => {
    const terminal = start(testCli(), ['apikey', 'create'], { SVC_API_PROMPTS: 'Plain' });
    assert.equal(await terminal.end(), 2);
    const text = terminal.screen.replaceAll(/\s+/g, ' ');
    assert.match(text, /^Error: SVC_API_PROMPTS is "Plain"\. Set it to plain or rich, or unset it\. Code: USAGE /);
  });
});

describe('a terminal of 60 columns', () => {
  it('shows no word that is cut', async () => {
    const cli = testCli();
    await cli.given('CI');
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, "routes: [{ host: '*', path: /containers, allow: DOCKER:READ_ANY }]\n");
    const description = 'What starts the containers of the pipeline, and stops them again';
    for (const [args, code] of [
      [['apikey', 'show', 'CI'], 0],
      [['apikey', 'update', 'CI', '--description', description], 0],
      [['explain', 'GET', 'http://a.example/containers', '--config', config], 0],
      [['doctor'], 0],
      [['apikey', 'create', 'CI', '--roles', 'VIEWER', '--no-input'], 1],
      [['apikey', 'creat'], 2],
    ] as const) {
      const variables = { SVC_API_DATABASE: cli.database };
      const terminal = new TerminalSession(process.execPath, [BIN, ...args], variables, { columns: COLUMNS });
      assert.equal(await terminal.end(), code, terminal.screen);
      // A slow command shows progress on a line that it clears.
      const lines = terminal.raw.split(/\n|\r(?!\n)/).map((line) => stripVTControlCharacters(line).trimEnd());
      const cut = lines.filter((line) => line.length > COLUMNS && / \S+ \S+$/.test(line));
      assert.deepEqual(cut, [], args.join(' '));
    }
  });
});
