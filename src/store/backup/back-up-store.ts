import type { KeyObject } from 'node:crypto';
import { statSync } from 'node:fs';
import { isKeysError, KeysError } from '../../keys/errors.ts';
import type { ProgressReport } from '../../keys/progress.ts';
import { printable } from '../../keys/text.ts';
import { BackupFile, unavailable } from './backup-file.ts';
import type { Connection } from '../connection.ts';
import { copyStore } from '../copy.ts';
import { PASSING_TABLES } from '../tables.ts';
import { type CopiedFile, copySqliteFile } from '../sqlite/copy-file.ts';
import { findDamage } from '../sqlite/integrity.ts';
import { PrivateFile } from '../sqlite/private-file.ts';
import { belongsToStore } from './own-files.ts';
import { type BackupContents, invalid, onBackup, verifyBackup } from './verify-backup.ts';

/** A backup that was made. */
export interface StoreBackup extends BackupContents {
  /** Its path. */
  file: string;
  /** See `Connection.location`. */
  from: string;
  bytes: number;
}

/** How to make a backup. */
export interface BackupOptions {
  /** Whether it may replace a file. */
  overwrite: boolean;
  /** The key of the audit log, if it has one. */
  auditKey: KeyObject | undefined;
  /** Is told how much was copied: bytes of a file, or rows of a database. */
  onCopied?: ProgressReport | undefined;
  /** In entries of the audit log. */
  onVerified?: ProgressReport | undefined;
}

/**
 * Writes a whole store into a file, as it is at one moment, while others use it, and checks that file. It has mode 0600
 * from its first moment, and gets its name only once it is whole and on disk.
 * @param path an absolute path
 * @throws KeysError BACKUP_EXISTS, BACKUP_UNAVAILABLE, BACKUP_INVALID, STORE_…
 */
export async function backUpStore(from: Connection, path: string, options: BackupOptions): Promise<StoreBackup> {
  requireOther(from, path);
  const target = BackupFile.create(path, options);
  try {
    const copied = await copyInto(target.partial, from, path, options);
    const contents = await onBackup(path, () => checkCopy(target.partial, path, copied, options));
    const bytes = statSync(target.partial).size;
    target.publish();
    return { file: path, from: from.location, bytes, ...contents };
  } catch (error) {
    if (!isKeysError(error)) throw error;
    if (error.code === 'BACKUP_INVALID') await requireSound(from, error);
    // The store is only read: it is the disk of the backup that is full.
    if (error.code !== 'STORE_FULL') throw error;
    throw unavailable(path, 'cannot be written: the disk is full, or a limit is reached. Make room', { cause: error });
  } finally {
    target.discard();
  }
}

/** Nothing of the store may become the backup. @throws KeysError USAGE */
function requireOther({ location, dialect }: Connection, path: string): void {
  if (dialect !== 'sqlite' || !belongsToStore(path, location)) return;
  const what = `${printable(path, 200)} is the key store itself, or belongs to it`;
  throw new KeysError('USAGE', `${what}. Choose another file for the backup.`);
}

/** A backup that is damaged is so because of the store, or of the disk that it was written to. */
async function requireSound(from: Connection, cause: KeysError): Promise<void> {
  const damage = from.dialect === 'sqlite' ? await findDamage(from).catch(() => undefined) : undefined;
  if (damage === undefined) return;
  throw new KeysError(
    'STORE_CORRUPT',
    `The key store ${from.location} is damaged (${printable(damage, 200)}). No backup was written. ` +
      'Check the disk, and restore an earlier backup.',
    { cause },
  );
}

async function copyInto(
  partial: string,
  from: Connection,
  path: string,
  { onCopied }: BackupOptions,
): Promise<CopiedFile> {
  if (from.dialect === 'sqlite') return copySqliteFile(from.location, partial, onCopied);
  const to = await PrivateFile.open(partial, { location: path, mustExist: false });
  try {
    const { keys, head } = await copyStore(from, to, { ...(onCopied && { onCopied }) });
    return { keys, head };
  } finally {
    await to.close();
  }
}

/** Opens what was written once more, and compares it with what was read. */
async function checkCopy(
  partial: string,
  path: string,
  copied: CopiedFile,
  { auditKey, onVerified }: BackupOptions,
): Promise<BackupContents> {
  const file = await PrivateFile.open(partial, { location: path, mustExist: true });
  try {
    // Whoever puts it in place by hand must not bring back a session that was ended since.
    await endPassing(file);
    const damage = await findDamage(file);
    if (damage !== undefined) throw invalid(path, damage);
    const contents = await verifyBackup(file, auditKey, onVerified);
    if (contents.keys !== copied.keys || contents.head?.hash !== copied.head)
      throw invalid(path, `it has ${contents.keys} keys, and the store had ${copied.keys}`);
    return contents;
  } finally {
    await file.close();
  }
}

/** Removes from a copy of a store what was under way: imports, requests of applications, and sessions. */
async function endPassing(file: Connection): Promise<void> {
  await file.write(async (db) => {
    for (const table of PASSING_TABLES) await db.deleteFrom(table).execute();
  });
}
