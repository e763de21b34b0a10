import assert from 'node:assert/strict';
import stringWidth from 'string-width';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type TestCli, testCli } from '../../support/cli.ts';
import { jsonLines, openTestKeys } from '../../support/keys.ts';
import { cliOnTerminal, KEYS, type ScreenSize, type TerminalSession } from '../../support/pty.ts';
import { namesIn } from '../../support/stored.ts';
import { importKeys } from '../../features/transfer/support/import-keys.ts';

const { enter, space, down, tab, pageDown, ctrlU, ctrlC } = KEYS;
/** In milliseconds. */
const DAY = 86_400_000;

describe('apikey --delete on a terminal', () => {
  let session: TerminalSession | undefined;
  afterEach(() => session?.close());

  function start(cli: TestCli, args: readonly string[] = [], size?: ScreenSize, env = {}): TerminalSession {
    const surroundings = { SVC_API_DATABASE: cli.database, ...env };
    return (session = cliOnTerminal(['apikey', '--delete', ...args], surroundings, undefined, size));
  }

  async function withKeys(): Promise<TestCli> {
    const cli = testCli();
    const { keys, store, time } = await openTestKeys({ asServer: true, database: cli.database });
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

  it('deletes nothing when the answer is No, the default', async () => {
    const cli = await withKeys();
    const terminal = start(cli);
    await terminal.answer('? API keys to delete', space);
    await terminal.answer('❯◉ First', enter);
    await terminal.answer('? Delete "First" and all keys that it created? They stop working at once (y/N)', enter);
    assert.equal(await terminal.end(), 130);
    assert.match(terminal.screen, /\nCancelled: nothing was changed\.\n$/);
    assert.deepEqual(await namesIn(cli.database), ['First', 'Second', 'Third']);
  });

  it('reports, without failing, that nothing is chosen or that there is nothing to choose from', async () => {
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

  describe('with many keys', () => {
    let cli: TestCli;
    beforeEach(async () => {
      cli = testCli();
      const { keys, store } = await openTestKeys({ asServer: true, database: cli.database });
      const line = (_: unknown, index: number) => ({
        name: `Service ${index + 1}`,
        sha256: index.toString(16).padStart(64, '0'),
        roles: ['GUEST'],
      });
      await importKeys(keys, jsonLines(...Array.from({ length: 600 }, line)));
      await store.close();
    });

    const names = async () => {
      const { stdout } = await cli.run(['apikey', 'list', '--all', '--columns', 'name']);
      return stdout.trimEnd().split('\n');
    };

    it('searches while typing, and keeps the choice', async () => {
      const terminal = start(cli);
      await terminal.see('More match: type to find them.');
      terminal.type('service 599');
      await terminal.answer('❯◯ Service 599 (GUEST;', tab);
      await terminal.answer('1 chosen: Service 599', ctrlU);
      await terminal.see('More match');
      terminal.type('Service 7');
      // The exact match comes first.
      await terminal.answer('❯◯ Service 7', tab);
      await terminal.answer('2 chosen: Service 599, Service 7', `${ctrlU}nothing like it`);
      await terminal.answer('Nothing matches.', `${tab}${space}${enter}`);
      await terminal.answer('? Delete these 2 API keys and all keys that they created?', `y${enter}`);
      assert.equal(await terminal.end(), 0);
      const left = await names();
      assert.deepEqual([left.length, left.includes('Service 7'), left.includes('Service 599')], [598, false, false]);
    });

    it('has no key that chooses several, or one by accident', async () => {
      const terminal = start(cli);
      await terminal.see('? API keys to delete');
      terminal.type(`a${ctrlU}i${ctrlU}1${ctrlU}\u0001${ctrlU}`);
      await terminal.see('type to search');
      terminal.type('Service');
      await terminal.answer('tab select', `${space}12${space}`);
      await terminal.answer('? API keys to delete Service 12 ', enter);
      assert.equal(await terminal.end(), 0);
      assert.doesNotMatch(terminal.screen, /chosen:/);
      assert.match(terminal.screen, /\nNo API keys found to delete: none was chosen\n$/);
      assert.equal((await names()).length, 600);
    });

    it('applies keys to the search results, however fast they are typed', async () => {
      const terminal = start(cli);
      await terminal.see('? API keys to delete');
      terminal.type(`Service 42${tab}${enter}`);
      await terminal.answer('? Delete "Service 42" and all keys that it created?', `y${enter}`);
      assert.equal(await terminal.end(), 0);
      assert.ok(!(await names()).includes('Service 42'));
    });

    it('takes the space bar for a choice in the list, and for text in the search', async () => {
      const terminal = start(cli);
      await terminal.see('space select');
      terminal.type('Service 59');
      await terminal.see('tab select');
      await terminal.answer('❯◯ Service 59', `${down}${space}`);
      await terminal.see('❯◉ Service 59');
      await terminal.see('space select');
      terminal.type(ctrlC);
      assert.equal(await terminal.end(), 130);
    });

    for (const [columns, rows] of [
      [40, 24],
      [40, 10],
      [20, 5],
      [200, 60],
    ] as const) {
      it(`works on a screen of ${columns} columns and ${rows} rows, without colours`, async () => {
        const terminal = start(cli, [], { columns, rows }, { NO_COLOR: '1' });
        await terminal.see('? API keys to delete');
        terminal.type(`${pageDown}${pageDown}${space}`);
        await terminal.see('◉ Service');
        await terminal.see('1 chosen:');
        terminal.type(ctrlC);
        assert.equal(await terminal.end(), 130);
        assert.equal(terminal.hasColors, false);
        for (const line of terminal.screen.split('\n').filter((text) => /[◯◉] Service/.test(text)))
          assert.ok(stringWidth(line.slice(-columns)) <= columns, line);
      });
    }

    it('is drawn anew when the terminal changes its size', async () => {
      const terminal = start(cli, [], { columns: 200 });
      await terminal.see('type to search • ↑↓ navigate • space select • ⏎ submit');
      terminal.resize(30, 12);
      await terminal.see('type to search • ↑↓ navigate\nspace select • ⏎ submit');
      terminal.type(`${space}${enter}`);
      await terminal.answer('? Delete', ctrlC);
      assert.equal(await terminal.end(), 130);
    });
  });
});
