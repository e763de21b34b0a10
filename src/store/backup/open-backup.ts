import type { KeyObject } from 'node:crypto';
import type { ProgressReport } from '../../keys/progress.ts';
import { removeFiles } from './backup-file.ts';
import { PrivateFile } from '../sqlite/private-file.ts';
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
