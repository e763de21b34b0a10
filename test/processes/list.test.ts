import assert from 'node:assert/strict';
import stringWidth from 'string-width';
import { ACTIONS } from '../../src/keys/permissions/catalog.ts';
import type { NewKey } from '../../src/keys/key/key-change.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { type TestCli, testCli } from '../support/cli.ts';
import { jsonLines, openTestKeys } from '../support/keys.ts';
import { cliOnTerminal } from '../support/pty.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';

const DAY = 86_400_000;
const CJK = '鍵'.repeat(100);
const THIRTY = ['DOCKER', 'VMS', 'ARRAY', 'DISK']
  .flatMap((resource) => ACTIONS.map((action) => `${resource}:${action}` as const))
  .slice(0, 30);

/** A store with keys that do not fit on a line. */
async function storeOfMany(): Promise<TestCli> {
  const cli = testCli();
  const { keys, store, time } = await openTestKeys({ database: cli.database });
  time.now = Date.now() - 3 * DAY;
  const create = async (key: NewKey) => {
    time.now += 1000;
    return keys.create(key, OPERATOR);
  };
  await create({ name: 'CI deploy', roles: ['VIEWER'], expiresIn: '30d' });
  await create({ name: CJK, roles: ['ADMIN', 'GUEST'], expiresIn: '1d' });
  await create({ name: 'Thirty', permissions: THIRTY });
  const { apiKey: key } = await create({ name: 'Rotating', roles: ['GUEST'] });
  await keys.rotate(key.id, { grace: '30d' }, OPERATOR);
  await store.close();
  return cli;
}

describe('apikey list', () => {
  let cli: TestCli;
  before(async () => {
    cli = await storeOfMany();
  });

  async function onTerminal(columns: number, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
    const surroundings = { SVC_API_DATABASE: cli.database, ...env };
    const terminal = cliOnTerminal(['apikey', 'list', ...args], surroundings, undefined, { columns });
    assert.equal(await terminal.end(), 0, terminal.screen);
    return terminal.screen.trimEnd().split('\n');
  }
  const piped = async (...args: string[]) => {
    const { stdout, stderr, code } = await cli.run(['apikey', 'list', ...args]);
    return { lines: stdout.trimEnd().split('\n'), stderr, code };
  };
  const cellsOf = (line: string | undefined) => line?.split(/ {2,}/);

  for (const [columns, head] of [
    [40, ['NAME', 'GRANTS', 'STATUS']],
    [80, ['NAME', 'GRANTS', 'STATUS', 'LAST USED', 'EXPIRES']],
    [200, ['NAME', 'GRANTS', 'STATUS', 'LAST USED', 'EXPIRES']],
  ] as const) {
    it(`has a line a key on a terminal of ${columns} columns, and none is wider`, async () => {
      const lines = await onTerminal(columns);
      assert.deepEqual(cellsOf(lines[0]), head);
      assert.equal(lines.length, 5);
      for (const line of lines) assert.ok(stringWidth(line) <= columns, line);
      assert.match(lines[2]!, /^鍵{4,}…/);
      assert.match(lines[3]!, /^Thirty +DOCKER:CR\S*.*… +ACTIVE/);
      assert.match(lines[4]!, /^Rotating +GUEST +ACTIVE, rotating/);
    });
  }

  it('shows relative times on a terminal', async () => {
    const lines = await onTerminal(80);
    assert.deepEqual(cellsOf(lines[1]), ['CI deploy', 'VIEWER', 'ACTIVE', 'never', 'in 27 days']);
    assert.deepEqual(cellsOf(lines[2])!.slice(2), ['EXPIRED', 'never', '2 days ago']);
    assert.deepEqual(cellsOf(lines[3])!.slice(2), ['ACTIVE', 'never', 'never']);
  });

  it('shows all columns of a pipe with --wide, and shortens nothing', async () => {
    const narrow = (await onTerminal(40, ['--wide'])).join('\n');
    const [head, ...rows] = await onTerminal(200, ['--wide']);
    assert.equal(rows.length, 4);
    for (const screen of [narrow, rows.join('\n')])
      for (const whole of ['鍵'.repeat(100), 'DISK:UPDATE_ANY, DISK:UPDATE_OWN'])
        assert.ok(screen.includes(whole), screen);
    const titles = 'NAME STATUS ROLES PERMISSIONS PREFIX CREATED EXPIRES LAST_USED USES ROTATION';
    assert.deepEqual(
      cellsOf(head),
      titles.split(' ').map((title) => title.replace('_', ' ')),
    );
  });

  it('takes the width from COLUMNS, if that is one', async () => {
    assert.equal(cellsOf((await onTerminal(200, [], { COLUMNS: '40' }))[0])!.length, 3);
    for (const COLUMNS of ['0', '-1', 'wide', '']) {
      assert.equal(cellsOf((await onTerminal(40, [], { COLUMNS }))[0])!.length, 3, COLUMNS);
      assert.equal(cellsOf((await onTerminal(80, [], { COLUMNS }))[0])!.length, 5, COLUMNS);
    }
  });

  it('is neither shortened nor relative in a pipe, whatever COLUMNS says', async () => {
    const { stdout } = await cli.run(['apikey', 'list'], { env: { COLUMNS: '40' } });
    const [first, second, third, fourth] = stdout.split('\n').map((line) => line.split('\t'));
    assert.equal(first!.length, 10);
    assert.equal(second![0], CJK);
    assert.equal(third![3], THIRTY.join(', '));
    assert.equal(fourth![1], 'ACTIVE');
    assert.match(first![6]!, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  describe('--columns', () => {
    it('picks columns in their order, for a terminal and for a pipe', async () => {
      const [head, first] = await onTerminal(80, ['--columns', 'expires,name']);
      assert.deepEqual([head, first], ['EXPIRES     NAME', 'in 27 days  CI deploy']);
      const { lines } = await piped('--columns', 'status,name,grants');
      assert.deepEqual(lines[0], 'ACTIVE\tCI deploy\tVIEWER');
      assert.equal(lines[2], `ACTIVE\tThirty\t${THIRTY.join(', ')}`);
      const ids = (await piped('--columns', 'id')).lines;
      assert.ok(
        ids.every((line) => /^[0-9a-f-]{36}$/.test(line)),
        ids.join(),
      );
    });

    it('takes names in any case and form, each once', async () => {
      for (const names of ['last-used,NAME', ' Last_Used , name', 'LASTUSED,Name,name', 'last used,name,last-used']) {
        assert.equal((await piped('--columns', names)).lines[0], '-\tCI deploy', names);
      }
    });

    it('names an unknown column and the nearest', async () => {
      for (const [names, text] of [
        ['name,staus', '"staus" is not a column of the list. Did you mean status?'],
        ['lastUsedAt', '"lastUsedAt" is not a column of the list. Did you mean last-used?'],
        ['name,', /^Error: "" is not a column of the list\. The columns are name, status, .* and metadata\.$/],
        ['xyzzy', /^Error: "xyzzy" is not a column of the list\. The columns are /],
      ] as const) {
        const { stderr, code } = await piped('--columns', names);
        assert.equal(code, 2);
        const [line] = stderr.split('\n');
        if (typeof text === 'string') assert.equal(line, `Error: ${text}`);
        else assert.match(line!, text);
      }
    });

    it('shows the chosen columns in lines that fit, if possible', async () => {
      const all = 'name,status,roles,permissions,prefix,created,expires,last-used,uses,rotation,grants,id,description';
      for (const columns of [40, 80]) {
        const lines = await onTerminal(columns, ['--columns', all]);
        assert.equal(lines.length, 5);
        for (const line of lines) assert.ok(stringWidth(line) <= columns, line);
      }
    });
  });

  it('says which of the picked columns a terminal is too narrow for', async () => {
    const lines = await onTerminal(20, ['--columns', 'name,status,roles,permissions,prefix,created,uses,id']);
    assert.match(lines.slice(5).join(' '), /^The terminal is too narrow for .+\. Pick fewer columns, or widen it\.$/);
  });

  it('refuses flags that contradict each other', async () => {
    for (const [one, other, ...args] of [
      ['--all', '--limit', '--all', '--limit', '5'],
      ['--columns', '--wide', '--columns', 'name', '--wide'],
      ['--columns', '--json', '--columns', 'name', '--json'],
      ['--wide', '--json', '--wide', '--json'],
    ] as const) {
      const { stdout, stderr, code } = await cli.run(['apikey', 'list', ...args]);
      assert.equal(code, 2);
      assert.ok((stdout + stderr).includes(`${one} and ${other} cannot be used together. Pass one of them.`), stdout);
    }
  });

  it('names the flags that asked for a page', async () => {
    for (const [args, text] of [
      [['--limit', '0'], '--limit is 0; a page has 1 to 500 keys.'],
      [['--limit', '501'], '--limit is 501; a page has 1 to 500 keys.'],
      [['--limit', 'many'], '--limit is "many", which is not a number.'],
      [['--limit=-1'], '--limit is "-1", which is not a number.'],
      [
        ['--after', 'x'],
        '--after is "x", which is not a cursor of this list. Pass the one from the end of the previous page: "next" in JSON.',
      ],
      [
        ['--after='],
        '--after is "", which is not a cursor of this list. Pass the one from the end of the previous page: "next" in JSON.',
      ],
    ] as const) {
      const { stdout, stderr, code } = await cli.run(['apikey', 'list', ...args]);
      assert.deepEqual([stdout, stderr.split('\n')[0], code], ['', `Error: ${text}`, 2]);
    }
  });

  describe('--all', () => {
    let many: TestCli;
    before(async () => {
      many = testCli();
      const { keys, store } = await openTestKeys({ database: many.database });
      const line = (_: unknown, index: number) => ({
        name: `Key ${index}`,
        sha256: index.toString(16).padStart(64, '0'),
        roles: [index % 2 ? 'GUEST' : 'VIEWER'],
      });
      await importKeys(keys, jsonLines(...Array.from({ length: 1201 }, line)));
      await store.close();
    });
    const list = (...args: string[]) => many.run(['apikey', 'list', ...args]);

    it('follows all pages, in text and as one JSON document', async () => {
      const { stdout, stderr } = await list('--all');
      const names = stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t')[0]);
      assert.deepEqual([new Set(names).size, names.length, stderr], [1201, 1201, '']);
      const json = JSON.parse((await list('--all', '--json')).stdout) as { keys: { name: string }[]; next: null };
      assert.deepEqual(Object.keys(json), ['keys', 'next']);
      assert.equal(json.next, null);
      assert.deepEqual(
        json.keys.map(({ name }) => name),
        names,
      );
    });

    it('goes with filters, and with a cursor', async () => {
      const { next } = JSON.parse((await list('--limit', '1', '--json')).stdout) as { next: string };
      const lines = (text: string) => text.trimEnd().split('\n').length;
      assert.equal(lines((await list('--all', '--after', next)).stdout), 1200);
      assert.equal(lines((await list('--all', '--roles', 'guest')).stdout), 600);
      assert.deepEqual(await list('--all', '--search', 'nothing like it'), {
        stdout: '',
        stderr: 'No API keys found.\n',
        code: 0,
        signal: null,
      });
    });

    it('has one head on a terminal', async () => {
      const terminal = cliOnTerminal(['apikey', 'list', '--all'], { SVC_API_DATABASE: many.database }, undefined, {
        columns: 80,
      });
      assert.equal(await terminal.end(), 0);
      const lines = terminal.screen.trimEnd().split('\n');
      assert.deepEqual([lines.length, lines.filter((line) => line.startsWith('NAME')).length], [1202, 1]);
    });
  });
});
