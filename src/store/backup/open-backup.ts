import { randomBytes, type KeyObject } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import { isKeysError } from '../../keys/errors.ts';
import type { ProgressReport } from '../../keys/progress.ts';
import type { SchemaDifference } from '../../keys/schema.ts';
import { indexedText } from '../schema.ts';
import { findDamage, migrateSqlite, requireOwnFormat, sqliteSchemaDifferences } from '../sqlite/sqlite-schema.ts';
import { MainFile, requireOwnWal } from '../sqlite/last-change.ts';
import { PrivateFile } from '../sqlite/private-file.ts';
import { createStore } from '../sqlite/sqlite-file.ts';
import { dialectOf } from '../sqlite/sqlite-driver.ts';
import { sqliteError } from '../sqlite/sqlite-errors.ts';
import { TABLE_NAMES, type Tables } from '../tables.ts';
import { tracedKysely } from '../timed-connection.ts';
import { type BackupContents, onBackup, verifyBackup } from './back-up-store.ts';
import { invalid, removeFiles, stageBackup } from './backup-file.ts';

/** A backup that was found to be whole, as a new store of the newest schema that has its rows. */
export interface OpenBackup {
  /** The path of that store. */
  path: string;
  file: PrivateFile;
  contents: BackupContents;
  /** In what the schema of the backup is not as it is made: none of that is in the new store. */
  differences: readonly SchemaDifference[];
}

/** How a connection is told that others may have made a file, or damaged it. */
const UNTRUSTED = ['locking_mode = exclusive', 'trusted_schema = off', 'cell_size_check = on'];

/** Which backup to open, and where. */
export interface OpenBackupOptions {
  /** An absolute path. */
  path: string;
  /** Next to which path its copy is. */
  near: string;
  auditKey: KeyObject | undefined;
  /** In entries of the audit log. */
  onVerified?: ProgressReport | undefined;
}

/**
 * Opens what a backup has while `work` runs, which may close and move it.
 * @throws KeysError BACKUP_INVALID, BACKUP_UNAVAILABLE, STORE_FOREIGN, STORE_NEWER, STORE_INSECURE; what `work` throws
 */
export async function withBackup<Result>(
  { path, near, auditKey, onVerified }: OpenBackupOptions,
  work: (backup: OpenBackup) => Promise<Result>,
): Promise<Result> {
  const staged = await stageBackup(path, near);
  const rebuilt = `${near}.restore-${randomBytes(4).toString('hex')}`;
  let file: PrivateFile | undefined;
  try {
    requireWalOf(staged, path);
    const differences = await onBackup(path, () => rebuild(staged, rebuilt, path));
    removeFiles(staged);
    file = await onBackup(path, () => PrivateFile.open(rebuilt, { location: path, mustExist: true }));
    const opened = file;
    const contents = await onBackup(path, () => verifyBackup(opened, auditKey, onVerified));
    if ('broken' in contents.log)
      throw invalid(path, `entry ${contents.log.broken} of its audit log ${contents.log.reason}`);
    return await work({ path: rebuilt, file, contents, differences });
  } finally {
    await file?.close();
    for (const each of [staged, rebuilt]) removeFiles(each);
  }
}

/**
 * Makes a new store of the rows of a copy of a backup.
 * @returns in what the schema of the backup is not as it is made
 */
async function rebuild(staged: string, rebuilt: string, path: string): Promise<SchemaDifference[]> {
  let driver: Database.Database | undefined;
  try {
    driver = new Database(staged, { fileMustExist: true });
    for (const pragma of UNTRUSTED) driver.pragma(pragma);
    const file = PrivateFile.over(driver, path);
    const version = await file.run((db) => requireOwnFormat(db, path));
    if (version === 0) throw invalid(path, 'it is an empty file');
    const differences = await file.run(sqliteSchemaDifferences);
    // Pages are checked by what tables and indexes say; triggers and views are not looked at.
    const runsExpressions = differences.every(
      ({ type, difference }) => difference === 'missing' || type === 'trigger' || type === 'view',
    );
    const damage = await findDamage(file, { runsExpressions });
    if (damage !== undefined) throw invalid(path, damage);
    driver.close();
    createStore(rebuilt);
    await copyInto(rebuilt, staged, version);
    return differences;
  } catch (error) {
    throw sqliteError(error, path);
  } finally {
    driver?.close();
  }
}

/** @throws KeysError BACKUP_INVALID where the -wal beside a backup is that of another file */
function requireWalOf(staged: string, path: string): void {
  const main = new MainFile(staged);
  try {
    requireOwnWal(path, staged, main);
  } catch (error) {
    if (!isKeysError(error) || error.code !== 'STORE_REPLACED') throw error;
    throw invalid(path, `${path}-wal belongs to another file`, { cause: error });
  } finally {
    main.close();
  }
}

/**
 * Makes a new store of the rows of another file, which nobody else uses: of its schema, nothing comes along, and
 * nothing acts. What was under way in it is left out.
 * @param to an empty file
 * @param version of the schema of both
 */
async function copyInto(to: string, from: string, version: number): Promise<void> {
  const driver = new Database(to, { fileMustExist: true });
  try {
    // As it is: what became of a key that a row refers to, is found where that is used.
    for (const pragma of [...UNTRUSTED, 'foreign_keys = off']) driver.pragma(pragma);
    const db = tracedKysely(dialectOf(driver, () => {}, true));
    await migrateSqlite(db, to, false, version);
    await sql`attach ${from} as backup`.execute(db);
    await db.transaction().execute((transaction) => copyRows(transaction));
  } finally {
    driver.close();
  }
}

async function copyRows(db: Kysely<Tables>): Promise<void> {
  const { rows: derived } = await sql<{ type: string; name: string; definition: string }>`
    select type, name, sql as definition from main.sqlite_schema
    where type in ('index', 'trigger') and sql is not null order by rowid`.execute(db);
  for (const { type, name } of derived) await sql`drop ${sql.raw(type)} main.${sql.id(name)}`.execute(db);
  for (const table of TABLE_NAMES) {
    const { rows } = await sql<{ name: string }>`select name from pragma_table_info(${table}, 'main')`.execute(db);
    // A qualified name is that of a column: SQLite takes another one that it does not know for a text.
    const columns = rows.map(({ name }) => sql.ref(`${table}.${name}`));
    if (columns.length > 0)
      await sql`insert into main.${sql.id(table)} (${sql.join(rows.map(({ name }) => sql.id(name)))})
        select ${sql.join(columns)} from backup.${sql.id(table)} not indexed`.execute(db);
    await setImmediate();
  }
  if (derived.some(({ name }) => name === 'api_keys_search_after_insert'))
    await sql`insert into main.api_keys_search (rowid, search_text)
      select rowid, ${sql.raw(indexedText('search_text'))} from main.api_keys`.execute(db);
  for (const { definition } of derived) await sql.raw(definition).execute(db);
}
