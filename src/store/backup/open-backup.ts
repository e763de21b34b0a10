import type { KeyObject } from 'node:crypto';
import { isKeysError } from '../../keys/errors.ts';
import type { ProgressReport } from '../../keys/progress.ts';
import { removeFiles } from './backup-file.ts';
import { MainFile } from '../sqlite/main-file.ts';
import { PrivateFile } from '../sqlite/private-file.ts';
import { requireOwnWal } from '../sqlite/replaced.ts';
import { stageBackup } from './staged-backup.ts';
import { type BackupContents, invalid, onBackup, verifyBackup } from './verify-backup.ts';

/** A copy of a backup that was found to be whole, of the newest schema. */
export interface OpenBackup {
  /** The path of the copy. */
  staged: string;
  file: PrivateFile;
  contents: BackupContents;
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
 * Opens a copy of a backup while `work` runs, which may close and move it.
 * @throws KeysError BACKUP_INVALID, BACKUP_UNAVAILABLE, STORE_FOREIGN, STORE_NEWER, STORE_INSECURE; what `work` throws
 */
export async function withBackup<Result>(
  { path, near, auditKey, onVerified }: OpenBackupOptions,
  work: (backup: OpenBackup) => Promise<Result>,
): Promise<Result> {
  const staged = await stageBackup(path, near);
  let file: PrivateFile | undefined;
  try {
    requireWalOf(staged, path);
    file = await onBackup(path, () => PrivateFile.open(staged, { location: path, mustExist: true }));
    const opened = file;
    const contents = await onBackup(path, () => verifyBackup(opened, auditKey, onVerified));
    if ('broken' in contents.log)
      throw invalid(path, `entry ${contents.log.broken} of its audit log ${contents.log.reason}`);
    return await work({ staged, file, contents });
  } finally {
    await file?.close();
    removeFiles(staged);
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
