import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type TestCli, testCli } from '../../support/cli.ts';
import { openTestKeys } from '../../support/keys.ts';
import { cliOnTerminal, KEYS, type TerminalSession } from '../../support/pty.ts';
import { namesIn } from '../../support/stored.ts';

const { enter, space, down } = KEYS;
/** In milliseconds. */
const DAY = 86_400_000;

describe('apikey --delete on a terminal', () => {
  let session: TerminalSession | undefined;
  afterEach(() => session?.close());

  function start(cli: TestCli, args: readonly string[] = []): TerminalSession {
    return (session = cliOnTerminal(['apikey', '--delete', ...args], { SVC_API_DATABASE: cli.database }));
  }

  async function withKeys(): Promise<TestCli> {
    const cli = testCli();
    const { keys, store, time } = await openTestKeys({ database: cli.database });
    time.now = Date.now() - 3 * DAY;
    await keys.create({ name: 'First', roles: ['VIEWER', 'GUEST'] }, OPERATOR);
    time.now += DAY;
    await keys.create({ name: 'Second', permissions: ['VMS:READ_ANY', 'ARRAY:READ_ANY'] }, OPERATOR);
    time.now += DAY;
    await keys.create({ name: 'Third', roles: ['ADMIN'], permissions: ['ME:READ_OWN'] }, OPERATOR);
    await store.close();
    return cli;
  }

  it('shows the keys with roles and age, and deletes the chosen ones after a Yes', async () => {
    const cli = await withKeys();
    const terminal = start(cli);
    await terminal.see('? API keys to delete');
    await terminal.see('↑↓ navigate');
    assert.ok(
      terminal.screen.includes(
        '❯◯ First (VIEWER, GUEST; 3 days ago)\n ◯ Second (2 permissions; 2 days ago)\n ◯ Third (ADMIN, 1 permission; 1 day ago)\n',
      ),
      terminal.screen,
    );
    terminal.type(space);
    await terminal.answer('❯◉ First', `${down}${down}${space}`);
    await terminal.answer('❯◉ Third', enter);
    await terminal.answer(
      '? Delete these 2 API keys and all keys that they created? They stop working at once (y/N)',
      `y${enter}`,
    );
    assert.equal(await terminal.end(), 0);
    assert.match(terminal.screen, /\nSuccessfully deleted 2 API keys\n$/);
    assert.deepEqual(await namesIn(cli.database), ['Second']);
  });

  it('deletes nothing when the answer is No, which Enter alone means', async () => {
    const cli = await withKeys();
    const terminal = start(cli);
    await terminal.answer('? API keys to delete', space);
    await terminal.answer('❯◉ First', enter);
    await terminal.answer('? Delete "First" and all keys that it created? They stop working at once (y/N)', enter);
    assert.equal(await terminal.end(), 130);
    assert.match(terminal.screen, /\nCancelled: nothing was changed\.\n$/);
    assert.deepEqual(await namesIn(cli.database), ['First', 'Second', 'Third']);
  });

  it('says so, without failing, when nothing is chosen or there is nothing to choose from', async () => {
    const cli = await withKeys();
    const chosenNone = start(cli);
    await chosenNone.answer('? API keys to delete', enter);
    assert.equal(await chosenNone.end(), 0);
    assert.match(chosenNone.screen, /\nNo API keys found to delete: none was chosen\n$/);
    assert.equal((await namesIn(cli.database)).length, 3);
    const none = testCli();
    const empty = start(none);
    assert.equal(await empty.end(), 0);
    assert.equal(empty.screen, `No API keys found to delete: there are none in ${none.database}\n`);
  });

  it('asks nothing when the key is named, and never with --json', async () => {
    const cli = await withKeys();
    const named = start(cli, ['--name', 'First']);
    assert.equal(await named.end(), 0);
    assert.equal(named.screen, 'Successfully deleted 1 API key\n');
    const json = start(cli, ['--json']);
    assert.equal(await json.end(), 2);
    const { deleted, code } = JSON.parse(json.screen) as Record<string, unknown>;
    assert.deepEqual([deleted, code], [0, 'USAGE']);
  });
});
