import assert from 'node:assert/strict';
import { describeOnEach } from '../../support/dialects.ts';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { authenticate, createPrincipal, idOf, jsonLines, openTestKeys, storedKey } from '../../support/keys.ts';
import { testCli } from '../../support/cli.ts';
import { runCliHere } from '../../support/cli-here.ts';
import { runCli } from '../../support/process.ts';
import { migratedStore, tempFolder, tempStore } from '../../support/temp.ts';
import { importKeys } from './support/import-keys.ts';

const FIELDS = [
  'id',
  'name',
  'description',
  'roles',
  'permissions',
  'limits',
  'allowFrom',
  'prefix',
  'createdAt',
  'createdBy',
  'expiresAt',
  'disabled',
];

const exported = async (database: string, ...args: string[]) => {
  const { stdout, stderr, code } = await runCliHere(['apikey', 'export', ...args, '--database', database]);
  assert.equal(code, 0, stderr);
  const keys = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { stdout, stderr, keys };
};
const exportTo = async (database: string, ...args: string[]) => {
  const { stdout, code } = await runCliHere(['apikey', 'export', '--json', '--database', database, '--to', ...args]);
  return { code, ...(JSON.parse(stdout) as { code?: string; exported?: number; file?: string }) };
};
const importInto = (database: string, input: string) =>
  runCliHere(['apikey', 'import', '--json', '--database', database], { input });

describeOnEach('apikey export', () => {
  /** A store with a key, its child, a disabled imported key, and one with two secrets. */
  async function storeOfFour(): Promise<{ database: string; secrets: Record<string, string> }> {
    const database = await migratedStore();
    const { keys, store, time } = await openTestKeys({ database });
    time.now = Date.now();
    const { secret: parent, principal } = await createPrincipal(keys, {
      name: 'Parent',
      roles: ['ADMIN'],
      expiresIn: '30d',
    });
    const { secret: child } = await createPrincipal(
      keys,
      { name: 'Child', description: 'of "Parent"', roles: ['GUEST'] },
      principal,
    );
    const off = 'sk_live_4eC39HqLyjWDarjtT1zdp7dc';
    await importKeys(
      keys,
      jsonLines({
        name: 'Off',
        secret: off,
        permissions: ['docker:read_any'],
        disabled: true,
        createdAt: '2020-01-01T00:00:00Z',
      }),
    );
    const { apiKey: key, key: older } = await keys.create({ name: 'Two', roles: ['GUEST'] }, OPERATOR);
    const { key: newer } = await keys.rotate(key.id, {}, OPERATOR);
    await store.close();
    return { database, secrets: { parent, child, off, older, newer } };
  }

  it('writes each key as one line with the fields that import takes, and no secret or digest', async () => {
    const { database, secrets } = await storeOfFour();
    const { stdout, stderr, keys } = await exported(database);
    assert.equal(stderr, '');
    for (const key of keys) assert.deepEqual(Object.keys(key), FIELDS);
    const { id, prefix, ...off } = keys.find(({ name }) => name === 'Off')!;
    assert.match(String(id), /^[0-9a-f-]{36}$/);
    assert.match(String(prefix), /^imported-[0-9A-Za-z]{12}$/);
    assert.deepEqual(off, {
      name: 'Off',
      description: null,
      roles: [],
      permissions: ['DOCKER:READ_ANY'],
      limits: [],
      allowFrom: null,
      createdAt: '2020-01-01T00:00:00.000Z',
      createdBy: null,
      expiresAt: null,
      disabled: true,
    });
    for (const secret of Object.values(secrets)) {
      const hash = createHash('sha256').update(secret).digest('hex');
      for (const text of [secret, hash]) assert.equal(stdout.includes(text), false);
    }
    const { stdout: report, code } = await importInto(tempStore(), stdout);
    assert.deepEqual([(JSON.parse(report) as { code: string }).code, code], ['SECRET_INVALID', 2]);
  });

  it('with digests, the same keys work in another store, and an export of that is the same', async () => {
    const { database, secrets } = await storeOfFour();
    const first = await exported(database, '--with-digests');
    assert.equal(
      first.stderr,
      'Only the newest secret of a key is exported. Keys whose previous secret is still accepted here: 1.\n',
    );
    for (const key of first.keys) assert.deepEqual(Object.keys(key), [...FIELDS, 'sha256']);
    const copy = await migratedStore();
    const { stdout, code } = await importInto(copy, first.stdout);
    assert.deepEqual([code, (JSON.parse(stdout) as { imported: number }).imported], [0, 4]);
    const second = await exported(copy, '--with-digests');
    assert.deepEqual([second.stdout, second.stderr], [first.stdout, '']);

    const { keys, store, time } = await openTestKeys({ database: copy });
    time.now = Date.now();
    const result = async (secret: string) => {
      const found = await authenticate(keys, secret);
      return 'refused' in found ? found.refused : found.principal.apiKey.name;
    };
    const results = await Promise.all(
      Object.entries(secrets).map(async ([name, secret]) => [name, await result(secret)]),
    );
    await store.close();
    assert.deepEqual(Object.fromEntries(results), {
      parent: 'Parent',
      child: 'Child',
      off: 'disabled',
      older: 'unknown',
      newer: 'Two',
    });
  });

  it('writes no key before the one that created it, over many pages, each once', async () => {
    const database = await migratedStore();
    const { store } = await openTestKeys({ database });
    // Later keys are older, so that the order of creation alone would be wrong.
    const keys = Array.from({ length: 1700 }, (_, number) =>
      storedKey(`Key ${number}`, {
        createdAt: 2000 - number,
        createdBy: number < 600 ? null : idOf(`Key ${number % 7 === 0 ? number - 1 : number % 600}`),
      }),
    );
    await store.repository.write((writer) => writer.insert(keys));
    await store.close();
    const { keys: lines } = await exported(database);
    const seen = new Set<unknown>([null]);
    for (const { id, createdBy } of lines) {
      assert.ok(seen.has(createdBy));
      seen.add(id);
    }
    assert.equal(seen.size, 1701);
    assert.equal(lines.length, 1700);
  });

  it('escapes characters that a terminal would obey or hide, as the other commands do in JSON', async () => {
    const database = await migratedStore();
    const description = 'a\u202eb';
    await runCliHere([
      'apikey',
      'create',
      '--name',
      'CI',
      '--roles',
      'GUEST',
      '--description',
      description,
      '--database',
      database,
    ]);
    for (const args of [['export'], ['show', 'CI', '--json'], ['list', '--json'], ['log', '--json']]) {
      const { stdout } = await runCliHere(['apikey', ...args, '--database', database]);
      assert.ok(stdout.includes('"a\\u202eb"') && !stdout.includes('\u202e'), stdout);
    }
  });

  it('writes nothing of an empty store, and nothing to an output that was discarded', async () => {
    const { store } = await openTestKeys();
    await store.close();
    const { stdout, stderr } = await exported(store.location);
    assert.deepEqual([stdout, stderr], ['', '']);
    const { database } = await storeOfFour();
    const { stderr: said, code } = await runCli(['apikey', 'export', '--database', database], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    assert.deepEqual([said, code], ['', 0]);
  });
});

describeOnEach('apikey export --to a file', () => {
  let database: string;
  let folder: string;
  beforeEach(async () => {
    database = await migratedStore();
    await testCli(database).given('CI');
    folder = tempFolder();
  });
  const keysIn = (path: string) =>
    readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { name: string }).name);

  it('writes the same as to stdout, readable only by this user', async () => {
    const file = join(folder, 'keys.jsonl');
    assert.deepEqual(await exportTo(database, file), { code: 0, exported: 1, file });
    assert.equal(readFileSync(file, 'utf8'), (await exported(database)).stdout);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(folder), ['keys.jsonl']);
  });

  it('replaces a file only with --overwrite, and never a link or a folder', async () => {
    const file = join(folder, 'keys.jsonl');
    writeFileSync(file, 'mine');
    assert.equal((await exportTo(database, file)).code, 'BACKUP_EXISTS');
    assert.equal(readFileSync(file, 'utf8'), 'mine');
    assert.equal((await exportTo(database, file, '--overwrite')).exported, 1);
    assert.deepEqual(keysIn(file), ['CI']);
    symlinkSync(file, join(folder, 'link'));
    for (const path of [join(folder, 'link'), folder, join(folder, 'none', 'keys.jsonl')])
      assert.equal((await exportTo(database, path, '--overwrite')).code, 'BACKUP_UNAVAILABLE', path);
    assert.deepEqual(readdirSync(folder).toSorted(), ['keys.jsonl', 'link']);
  });

  it('leaves no file if the keys cannot be read', async () => {
    const none = join(folder, 'none.sqlite');
    assert.equal((await exportTo(none, join(folder, 'keys.jsonl'))).code, 'STORE_UNAVAILABLE');
    assert.deepEqual(readdirSync(folder), []);
  });

  it('refuses flags that do not go together', async () => {
    const store = join(folder, 'copy.sqlite');
    for (const args of [[store, '--overwrite'], [store, '--with-digests'], ['']])
      assert.equal((await exportTo(database, ...args)).code, 'USAGE', args.join(' '));
    for (const flag of ['--json', '--overwrite'])
      assert.equal((await runCliHere(['apikey', 'export', flag, '--database', database])).code, 2, flag);
    assert.deepEqual(readdirSync(folder), []);
  });
});

describe('apikey export --to', () => {
  it('does not replace the store itself, whatever its name is', async () => {
    const database = join(tempFolder(), 'keys.store');
    await testCli(database).given('CI');
    for (const path of [database, `${database}-wal`])
      assert.equal((await exportTo(database, path, '--overwrite')).code, 'USAGE', path);
    assert.equal((await exported(database)).keys.length, 1);
  });
});
