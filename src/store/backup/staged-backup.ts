import { closeSync, constants, createReadStream, createWriteStream, fstatSync, openSync, readSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';
import { removeAbandoned, removeFiles, unavailable } from './backup-file.ts';
import { invalid } from './verify-backup.ts';
import { createStore } from '../sqlite/sqlite-access.ts';

const OTHERS_WRITE = 0o022;
/** What an SQLite file begins with (its file format, section 1.3). */
export const MAGIC = 'SQLite format 3\0';

/**
 * Copies a backup to where it is looked at, and may become the store: nobody can exchange it in between, and the backup
 * itself stays as it is. Its -wal is copied as well: one that was not made by svc-api may have one.
 * @param near the path next to which the copy is, with mode 0600
 * @returns the path of the copy
 * @throws KeysError BACKUP_UNAVAILABLE, BACKUP_INVALID, STORE_INSECURE
 */
export async function stageBackup(backup: string, near: string): Promise<string> {
  const staged = `${near}.restore-${randomBytes(4).toString('hex')}`;
  removeAbandoned(near, 'restore');
  try {
    await copyFile(backup, staged, { isWal: false });
    await copyFile(`${backup}-wal`, `${staged}-wal`, { isWal: true });
    return staged;
  } catch (error) {
    removeFiles(staged);
    throw error;
  }
}

async function copyFile(from: string, to: string, { isWal }: { isWal: boolean }): Promise<void> {
  let file: number;
  try {
    // Opening a pipe would wait for its writer otherwise.
    file = openSync(from, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    if (isWal && code === 'ENOENT') return;
    throw unavailable(from, code === 'ENOENT' ? 'does not exist. Check the path' : `cannot be read (${code})`, {
      cause: error,
    });
  }
  try {
    requireOwnFile(file, from);
    if (!isWal) requireSqlite(file, from);
    createStore(to);
    const source = createReadStream(from, { fd: file, autoClose: false, start: 0 });
    await pipeline(source, createWriteStream(to, { flags: 'r+' }));
  } catch (error) {
    if (error instanceof KeysError) throw error;
    throw unavailable(from, `cannot be copied (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`, {
      cause: error,
    });
  } finally {
    closeSync(file);
  }
}

/** Others could have given themselves keys in it. Root also takes that of another user. */
function requireOwnFile(file: number, path: string): void {
  const stat = fstatSync(file);
  if (!stat.isFile()) throw unavailable(path, 'is not a regular file. Check the path');
  const user = process.geteuid?.();
  if (user === undefined) return;
  const isForeign = user !== 0 && stat.uid !== user && stat.uid !== 0;
  if (!isForeign && (stat.mode & OTHERS_WRITE) === 0) return;
  const reason = isForeign ? `belongs to another user (${stat.uid})` : 'can be written by others';
  throw new KeysError(
    'STORE_INSECURE',
    `The backup ${printable(path, 200)} ${reason}, who may have given themselves keys in it. ` +
      `Check it, and ${isForeign ? 'make a copy of your own' : 'run chmod go-w on it'}.`,
  );
}

function requireSqlite(file: number, path: string): void {
  const head = Buffer.alloc(MAGIC.length);
  const read = readSync(file, head, 0, head.length, 0);
  if (head.toString('latin1', 0, read) !== MAGIC) throw invalid(path, 'it is no SQLite file');
}
