import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { testCli } from '../../support/cli.ts';
import { describeOnEachAndRemotely, itOnStores } from '../../support/dialects.ts';
import { errorText } from '../../support/errors.ts';
import { openTestKeys } from '../../support/keys.ts';
import { cliOnTerminal } from '../../support/pty.ts';
import { migratedStore } from '../../support/temp.ts';

/** A store with a valid, a disabled and an expired key. */
async function storeOfThree(): Promise<string> {
  const database = await migratedStore();
  const { keys, store, time } = await openTestKeys({ database });
  time.now = Date.UTC(2026, 0, 1);
  await keys.create(
    { name: 'Working', description: 'does\u00a0things', roles: ['VIEWER'], permissions: ['DOCKER:UPDATE_ANY'] },
    OPERATOR,
  );
  time.now += 1000;
  const { apiKey: key } = await keys.create({ name: 'Off', roles: ['GUEST'] }, OPERATOR);
  await keys.setEnabled(key.id, false, OPERATOR);
  time.now += 1000;
  await keys.create({ name: 'Over', roles: ['GUEST', 'CONNECT'], expiresIn: '1d' }, OPERATOR);
  await store.close();
  return database;
}

describeOnEachAndRemotely('the verbs of apikey', () => {
  let database: string;
  beforeEach(async () => {
    database = await storeOfThree();
  });
  const run = async (...args: string[]) => {
    const { stdout, stderr, code } = await testCli(database).run(['apikey', ...args]);
    return { stdout, stderr, code };
  };
  const json = async (...args: string[]) => {
    const { stdout, stderr, code } = await run(...args, '--json');
    assert.equal(stderr, '');
    return { code, ...(JSON.parse(stdout) as object) } as Record<string, unknown>;
  };

  it('create and delete are the same as the flags', async () => {
    const created = await run('create', '--name', 'Short', '--roles', 'guest', '--expires-in', '2h');
    assert.match(created.stdout, /^svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\n$/);
    const shown = (await json('show', '--name', 'Short')) as { createdAt: string; expiresAt: string };
    assert.equal(Date.parse(shown.expiresAt) - Date.parse(shown.createdAt), 7_200_000);
    assert.equal((await json('create', '--name', 'Short', '--roles', 'guest'))['code'], 'NAME_TAKEN');
    assert.deepEqual(await run('delete', '--name', 'Short'), {
      stdout: 'Successfully deleted 1 API key\n',
      stderr: '',
      code: 0,
    });
    assert.deepEqual((await run('delete', '--name', 'Short')).code, 1);
    assert.deepEqual(await json('delete', '--name', 'a-b').then(({ deleted, code }) => [deleted, code]), [
      0,
      'NAME_INVALID',
    ]);
  });

  it('create --dry-run shows the key without creating it', async () => {
    const preview = await run(
      'create',
      '--name',
      'Docker bot',
      '--permissions',
      'docker:read_any',
      '--roles',
      'guest',
      '--dry-run',
    );
    assert.deepEqual(preview, {
      stdout:
        'ME:READ_OWN\nONLINE:READ_ANY\nONLINE:READ_OWN\nWELCOME:READ_ANY\nWELCOME:READ_OWN\nDOCKER:READ_ANY\nDOCKER:READ_OWN\n',
      stderr: '',
      code: 0,
    });
    assert.deepEqual(await json('create', '--name', ' Reader ', '--permissions', 'docker:read_own', '--dry-run'), {
      code: 0,
      name: 'Reader',
      description: null,
      owner: null,
      tags: [],
      metadata: null,
      roles: [],
      permissions: ['DOCKER:READ_OWN'],
      limits: [],
      allowFrom: null,
      expiresAt: null,
      effectivePermissions: ['DOCKER:READ_OWN'],
    });
    assert.equal((await json('create', '--name', 'x', '--dry-run'))['code'], 'NO_GRANTS');
    assert.equal((await json('show', '--name', 'Docker bot'))['code'], 'NOT_FOUND');
  });

  it('create --dry-run fails as create would', async () => {
    const taken = await json('create', '--name', 'Working', '--roles', 'GUEST', '--dry-run');
    assert.deepEqual(
      [taken['code'], taken['error']],
      [
        'NAME_TAKEN',
        'An API key named "Working" already exists. Pass --overwrite to replace it, or choose another name.',
      ],
    );
    const replacing = await json('create', '--name', 'Working', '--roles', 'GUEST', '--dry-run', '--overwrite');
    assert.equal(replacing['code'], 0);
  });

  itOnStores('create --dry-run makes no store', async () => {
    const elsewhere = testCli();
    const preview = await elsewhere.run(['apikey', 'create', '--name', 'x', '--roles', 'GUEST', '--dry-run']);
    assert.equal(preview.code, 0, preview.stderr);
    assert.equal(existsSync(elsewhere.database), false);
  });

  it('list shows one line a key, with tabs between, to a program', async () => {
    const { stdout, stderr, code } = await run('list');
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.replaceAll(/svc_[0-9A-Za-z]{12}_…/g, 'PREFIX').split('\t'));
    assert.deepEqual(
      { rows, stderr, code },
      {
        rows: [
          [
            'Working',
            'ACTIVE',
            'VIEWER',
            'DOCKER:UPDATE_ANY',
            'PREFIX',
            '2026-01-01T00:00:00.000Z',
            '-',
            '-',
            '0',
            '-',
          ],
          ['Off', 'DISABLED', 'GUEST', '-', 'PREFIX', '2026-01-01T00:00:01.000Z', '-', '-', '0', '-'],
          [
            'Over',
            'EXPIRED',
            'GUEST, CONNECT',
            '-',
            'PREFIX',
            '2026-01-01T00:00:02.000Z',
            '2026-01-02T00:00:02.000Z',
            '-',
            '0',
            '-',
          ],
        ],
        stderr: '',
        code: 0,
      },
    );
  });

  itOnStores('list shows an aligned table with a head on a terminal, without colours and boxes', async () => {
    const terminal = cliOnTerminal(['apikey', 'list'], { SVC_API_DATABASE: database });
    assert.equal(await terminal.end(), 0);
    assert.match(terminal.screen, /^NAME +GRANTS +STATUS +LAST USED +EXPIRES *\n/);
    assert.match(terminal.screen, /\nOff {5,}GUEST {5,}DISABLED +never +never\n/);
    assert.equal(terminal.raw.includes('\u001b['), false);
    assert.doesNotMatch(terminal.screen, /[│─┌]/);
  });

  itOnStores('show has relative times beside the absolute ones only on a terminal', async () => {
    const terminal = cliOnTerminal(['apikey', 'show', 'Over'], { SVC_API_DATABASE: database });
    assert.equal(await terminal.end(), 0);
    assert.match(terminal.screen, /\nexpiresAt +2026-01-02T00:00:02\.000Z \((\d+ \w+ ago|in \d+ \w+)\)\n/);
    assert.match(terminal.screen, /\nlastUsedAt +-\n/);
    assert.match((await run('show', 'Over')).stdout, /^expiresAt +2026-01-02T00:00:02\.000Z$/m);
  });

  it('create takes the name as an argument or as a flag', async () => {
    assert.equal((await run('create', 'As argument', '--roles', 'guest')).code, 0);
    assert.equal((await json('show', 'As argument'))['name'], 'As argument');
    assert.deepEqual((await json('create', 'A', '--dry-run', '--roles', 'guest'))['name'], 'A');
    for (const second of ['Same', 'Other']) {
      const { stderr, code } = await run('create', 'Same', '--name', second, '--roles', 'guest');
      assert.deepEqual(
        [stderr.split('\n')[0], code],
        ['Error: The name of the key is given twice: as an argument and by --name. Leave one out.', 2],
      );
    }
    assert.equal((await run('create', 'Not', 'quoted', '--roles', 'guest')).code, 2);
    assert.equal((await run('--create', 'As argument', '--roles', 'guest')).code, 2);
  });

  it('create says when the key ends', async () => {
    const { stderr } = await run('create', 'Ends', '--roles', 'guest', '--expires-in', '30d');
    const { expiresAt } = await json('show', 'Ends');
    assert.ok(stderr.includes(` It expires ${String(expiresAt)} (in 30 days). `), stderr);
    assert.match((await run('create', 'Stays', '--roles', 'guest')).stderr, / It does not expire\. /);
    assert.match((await run('rotate', 'Ends')).stderr, / The key expires \S+Z \(in 30 days\)\. /);
  });

  it('list filters, searches and pages', async () => {
    const names = async (...args: string[]) =>
      ((await json('list', ...args))['keys'] as { name: string }[]).map(({ name }) => name);
    assert.deepEqual(await names('--roles', 'connect,viewer'), ['Working', 'Over']);
    assert.deepEqual(await names('--status', 'expired'), ['Over']);
    assert.deepEqual(await names('--search', 'OV'), ['Over']);
    const first = await json('list', '--limit', '2');
    assert.equal((first['keys'] as object[]).length, 2);
    assert.deepEqual(await names('--after', String(first['next'])), ['Over']);
    assert.match((await run('list', '--limit', '2')).stderr, /^More keys follow: pass --all, or --after \S+\n$/);
    assert.deepEqual(await run('list', '--search', 'nothing like it'), {
      stdout: '',
      stderr: 'No API keys found.\n',
      code: 0,
    });
    for (const args of [
      ['--status', 'gone'],
      ['--limit', '501'],
      ['--limit', 'many'],
      ['--after', 'x'],
      ['--roles', ''],
    ]) {
      const { code, error } = (await json('list', ...args)) as { code: string; error: string };
      assert.match(code, /^(INPUT|ROLE)_INVALID$/, error);
    }
  });

  it('refuse an empty filter, which would select all keys', async () => {
    for (const args of [
      ['delete', '--search', ''],
      ['delete', '--search', ' '],
      ['disable', '--search='],
      ['disable', '--owner', ''],
      ['update', '--search', '', '--description', 'x'],
      ['update', '--where-owner', ' ', '--description', 'x'],
      ['update', '--where-parent', '', '--description', 'x'],
      ['delete', '--parent', ''],
      ['list', '--search', ''],
    ]) {
      const { stdout, stderr, code } = await run(...args, ...(args[0] === 'list' ? [] : ['--yes']));
      assert.deepEqual([stdout, code], ['', 2], args.join(' '));
      assert.match(stderr, /--(where-)?(search|owner|parent) is empty\. Give a text, or leave it out\./);
    }
    const { keys } = await json('list');
    assert.deepEqual(
      (keys as { name: string; status: string }[]).map(({ name, status }) => `${name} ${status}`).toSorted(),
      ['Off DISABLED', 'Over EXPIRED', 'Working ACTIVE'],
    );
  });

  it('show has every field, with the effective permissions', async () => {
    const { id, prefix, ...rest } = await json('show', '--name', 'Over');
    assert.match(String(id), /^[0-9a-f-]{36}$/);
    assert.match(String(prefix), /^svc_[0-9A-Za-z]{12}_…$/);
    assert.deepEqual(rest, {
      code: 0,
      name: 'Over',
      description: null,
      owner: null,
      tags: [],
      metadata: null,
      roles: ['GUEST', 'CONNECT'],
      permissions: [],
      unknownGrants: [],
      limits: [],
      allowFrom: null,
      status: 'EXPIRED',
      createdAt: '2026-01-01T00:00:02.000Z',
      createdBy: null,
      expiresAt: '2026-01-02T00:00:02.000Z',
      disabledAt: null,
      disabledByPolicy: false,
      managed: false,
      uses: 0,
      budgets: [],
      lastUsedAt: null,
      rotation: null,
      person: null,
      effectivePermissions: [
        'ME:READ_OWN',
        ...['ONLINE', 'WELCOME'].flatMap((resource) => [`${resource}:READ_ANY`, `${resource}:READ_OWN`]),
        ...['CLOUD', 'CONNECT', 'CONNECT__REMOTE_ACCESS'].flatMap((resource) =>
          ['READ_ANY', 'READ_OWN', 'UPDATE_ANY', 'UPDATE_OWN'].map((action) => `${resource}:${action}`),
        ),
      ],
    });
    assert.match((await run('show', '--name', 'Working')).stdout, /^status +ACTIVE$/m);
    const missing = 'The name of the key is missing. Pass it as an argument, or by --name <name>.';
    assert.deepEqual(await run('show'), { stdout: '', stderr: errorText('USAGE', missing, 'apikey show'), code: 2 });
    assert.deepEqual(await run('show', 'Working'), await run('show', '--name', 'Working'));
    assert.equal((await json('show', 'Working', '--name', 'Working'))['code'], 'USAGE');
    assert.deepEqual(await run('show', '--name', 'Nobody'), {
      stdout: '',
      stderr: errorText('NOT_FOUND', 'There is no API key named "Nobody". Run "svc-api apikey list" to see all.'),
      code: 1,
    });
  });

  it('update shows each change as before and after', async () => {
    const args = [
      'update',
      '--name',
      'Working',
      '--rename',
      'Still working',
      '--description',
      '',
      '--roles',
      'guest',
      '--expires-in',
      '10d',
    ];
    const { stdout } = await run(...args);
    assert.match(
      stdout,
      /^name: Working -> Still working\ndescription: does\u00a0things -> -\nroles: VIEWER -> GUEST\nexpiresAt: - -> \d{4}-.*Z\n$/,
    );
    assert.deepEqual(
      (await json('update', '--name', 'Still working', '--no-expiry', '--permissions', 'docker:update_any'))[
        'changes'
      ] !== undefined,
      true,
    );
    assert.deepEqual(await run('update', '--name', 'Still working', '--roles', 'GUEST'), {
      stdout: 'Nothing has changed.\n',
      stderr: '',
      code: 0,
    });
    const issues = [
      [['--rename', 'Off'], 'NAME_TAKEN'],
      [['--rename', 'a-b'], 'NAME_INVALID'],
      [['--roles', 'BOSS'], 'ROLE_INVALID'],
      [['--expires-at', '2020-01-01T00:00:00Z'], 'EXPIRY_INVALID'],
      [['--no-expiry', '--expires-in', '1d'], 'USAGE'],
      [[], 'USAGE'],
    ] as const;
    for (const [flags, code] of issues)
      assert.equal((await json('update', '--name', 'Still working', ...flags))['code'], code, flags.join(' '));
  });

  it('enable and disable say what the key is now', async () => {
    assert.deepEqual(await run('enable', '--name', 'Off'), {
      stdout: 'API key "Off" is enabled\n',
      stderr: '',
      code: 0,
    });
    assert.deepEqual(await run('enable', '--name', 'Off'), {
      stdout: 'API key "Off" was enabled already\n',
      stderr: '',
      code: 0,
    });
    const before = Date.now();
    const { changed, apiKey } = (await json('disable', '--name', 'Off')) as {
      changed: boolean;
      apiKey: { status: string; disabledAt: string };
    };
    assert.deepEqual([changed, apiKey.status], [true, 'DISABLED']);
    const disabledAt = Date.parse(apiKey.disabledAt);
    assert.ok(disabledAt >= before && disabledAt <= Date.now(), apiKey.disabledAt);
    for (const verb of ['enable', 'disable']) assert.equal((await json(verb, '--name', 'Nobody'))['code'], 'NOT_FOUND');
  });

  it('refuse an impossible expiry, for the flag form too', async () => {
    for (const end of [
      ['--expires-in', 'soon'],
      ['--expires-in=-5m'],
      ['--expires-in', '99999d'],
      ['--expires-at', '2020-01-01T00:00:00Z'],
      ['--expires-at', 'tomorrow'],
      ['--expires-in', ''],
    ]) {
      const { code } = await json('--create', '--name', 'x', '--roles', 'GUEST', ...end);
      assert.equal(code, 'EXPIRY_INVALID', end.join(' '));
    }
    assert.equal((await json('--delete', '--name', 'Off', '--expires-in', '1h'))['code'], 'USAGE');
  });
});
