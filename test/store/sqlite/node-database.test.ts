import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase, openNodeDatabase, type PrivateDatabase } from '../../../src/store/sqlite/database.ts';
import { tempFolder } from '../../support/temp.ts';

const TABLE = 'create table t (a unique, b text not null)';

/** The failing call on an opened database. */
const FAILURES: [what: string, code: string, work: (open: (path: string) => PrivateDatabase) => unknown][] = [
  [
    'a value twice',
    'SQLITE_CONSTRAINT',
    (open) => filled(open(':memory:')).prepare('insert into t values (1, 2)').run(),
  ],
  ['an unknown table', 'SQLITE_ERROR', (open) => open(':memory:').prepare('select * from missing')],
  ['several statements', 'SQLITE_ERROR', (open) => open('').exec('create table t (a); create table t (a)')],
  ['a missing file', 'SQLITE_CANTOPEN', (open) => open(join(tempFolder(), 'missing.sqlite'))],
  ['another file', 'SQLITE_NOTADB', (open) => open(fileOf(randomBytes(4096))).pragma('user_version')],
  ['a limit of pages', 'SQLITE_FULL', (open) => fill(open(''))],
  ['a file that is only read', 'SQLITE_READONLY', (open) => onlyRead(open(':memory:')).exec('delete from t')],
];

function filled(database: PrivateDatabase): PrivateDatabase {
  database.exec(`${TABLE}; insert into t values (1, 'one'), (2, 'two')`);
  return database;
}

function onlyRead(database: PrivateDatabase): PrivateDatabase {
  filled(database).pragma('query_only = on');
  return database;
}

function fill(database: PrivateDatabase): void {
  database.pragma('max_page_count = 10');
  filled(database).prepare('insert into t values (?, ?)').run(3, 'x'.repeat(100_000));
}

function fileOf(bytes: Buffer): string {
  const path = join(tempFolder(), 'file');
  writeFileSync(path, bytes);
  return path;
}

function failureOf(open: (path: string) => PrivateDatabase, work: (typeof FAILURES)[number][2]) {
  let database: PrivateDatabase | undefined;
  try {
    work((path) => (database = open(path)));
  } catch (error) {
    return error as Error & { code: string };
  } finally {
    database?.close();
  }
  return assert.fail('it does not fail');
}

describe("Node's own SQLite, where the driver has no binary", () => {
  const byNode = (path: string) => openNodeDatabase(path)!;
  const byDriver = (path: string) => openDatabase(path, { fileMustExist: path !== '' && path !== ':memory:' });

  for (const [what, code, work] of FAILURES)
    it(`fails with the code and the text of the driver: ${what}`, () => {
      const [own, driver] = [failureOf(byNode, work), failureOf(byDriver, work)];
      assert.equal(own.code, code);
      assert.ok(driver.code.startsWith(code), driver.code);
      assert.equal(own.message, driver.message);
    });

  it('answers as the driver does', () => {
    const answers = [byNode, byDriver].map((open) => {
      const database = filled(open(''));
      const all = database.prepare<object>('select * from t where a > @after');
      const change = database.prepare('update t set b = ? where a = ?');
      const rows = [...all.all({ after: 0 }), all.get({ after: 2 })].map(plain);
      const seen = {
        rows,
        readers: [all.reader, change.reader],
        changes: [change.run(['three', 1]).changes, change.run('four', 3).changes],
        pragma: database.prepare<object>('pragma journal_mode = off').all().map(plain),
        inTransaction: [database.exec('begin'), database.inTransaction, database.exec('rollback')][1],
      };
      database.close();
      database.close();
      return seen;
    });
    assert.deepEqual(answers[0], answers[1]);
  });

  it('makes no file', () => {
    const path = join(tempFolder(), 'missing?.sqlite');
    assert.throws(() => openNodeDatabase(path));
    assert.equal(existsSync(path), false);
    writeFileSync(path, '');
    filled(byNode(path)).close();
    assert.equal(byDriver(path).prepare('select count(*) from t').pluck().get(), 2);
  });
});

/** Rows of Node's SQLite have no prototype. */
function plain(row: object | undefined): unknown {
  return row === undefined ? row : { ...row };
}
