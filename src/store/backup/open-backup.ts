import { randomBytes, type KeyObject } from 'node:crypto';
import Database from 'better-sqlite3';
import { isKeysError } from '../../keys/errors.ts';
import type { ProgressReport } from '../../keys/progress.ts';
import type { SchemaDifference } from '../../keys/schema.ts';
import { removeFiles } from './backup-file.ts';
import { findDamage } from '../sqlite/integrity.ts';
import { MainFile, requireOwnWal } from '../sqlite/last-change.ts';
import { PrivateFile } from '../sqlite/private-file.ts';
import { rebuildStore, UNTRUSTED } from '../sqlite/rebuild.ts';
import { createStore } from '../sqlite/sqlite-access.ts';
import { sqliteError } from '../sqlite/sqlite-errors.ts';
import { requireOwnFormat } from '../sqlite/sqlite-migrate.ts';
import { sqliteSchemaDifferences } from '../sqlite/sqlite-schema.ts';
import { stageBackup } from './staged-backup.ts';
import { type BackupContents, invalid, onBackup, verifyBackup } from './verify-backup.ts';

/** A backup that was found to be whole, as a new store of the newest schema that has its rows. */
export interface OpenBackup {
  /** The path of that store. */
  path: string;
  file: PrivateFile;
  contents: BackupContents;
  /** In what the schema of the backup is not as it is made: none of that is in the new store. */
  differences: readonly SchemaDifference[];
}

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
    await rebuildStore({ from: staged, to: rebuilt, version, location: path });
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
