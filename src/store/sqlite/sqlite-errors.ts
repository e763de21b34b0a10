import { accessSync, constants } from 'node:fs';
import { type Cause, driverCodeOf, storeError, takenError } from '../errors.ts';

const READ_ONLY_FILE_SYSTEM = 'is on a read-only file system. Move it, or mount that file system writable';
const LOCKED = 'is locked by another process. Try again in a moment';
const NO_ROOM = 'the disk is full or a limit is reached. Make room and try again';
const OTHER_USER = 'cannot be opened by this user. Run as the user that owns it';
const DENIED = 'cannot be opened: permission denied. Run as the user that owns it, or choose another path';
const NO_FOLDER = 'cannot be opened: a part of its path is not a folder. Check the path';

/** Result codes of SQLite and codes of the file system, by prefix. */
const CAUSES: readonly Cause[] = [
  ['SQLITE_BUSY', 'STORE_LOCKED', LOCKED],
  ['SQLITE_LOCKED', 'STORE_LOCKED', LOCKED],
  ['SQLITE_FULL', 'STORE_FULL', `cannot grow: ${NO_ROOM}`],
  ['SQLITE_IOERR_WRITE', 'STORE_FULL', `cannot be written: ${NO_ROOM}`],
  ['SQLITE_IOERR_SHMSIZE', 'STORE_FULL', `cannot be opened: ${NO_ROOM}`],
  ['ENOSPC', 'STORE_FULL', 'cannot be created: the disk is full. Make room and try again'],
  ['EDQUOT', 'STORE_FULL', 'cannot be created: the disk quota is used up. Make room and try again'],
  [
    'SQLITE_READONLY',
    'STORE_READONLY',
    'is read-only for this user. Run as the user that owns it, or make it and its folder writable',
  ],
  ['EROFS', 'STORE_READONLY', READ_ONLY_FILE_SYSTEM],
  [
    'SQLITE_IOERR_SHORT_READ',
    'STORE_CORRUPT',
    'is damaged, or was replaced while another program had it open. ' +
      'Stop that program and try again, or restore it from a backup',
  ],
  ['SQLITE_CORRUPT', 'STORE_CORRUPT', 'is damaged. Restore it from a backup'],
  ['SQLITE_NOTADB', 'STORE_CORRUPT', 'is not a key store, or is damaged. Check the path, or restore it from a backup'],
  ['SQLITE_PERM', 'STORE_UNAVAILABLE', OTHER_USER],
  ['SQLITE_AUTH', 'STORE_UNAVAILABLE', OTHER_USER],
  [
    'SQLITE_CANTOPEN',
    'STORE_UNAVAILABLE',
    'cannot be opened. Check that the path is right, and that this user can read and write the file and its folder',
  ],
  ['EACCES', 'STORE_UNAVAILABLE', DENIED],
  ['EPERM', 'STORE_UNAVAILABLE', DENIED],
  ['ENOENT', 'STORE_UNAVAILABLE', 'does not exist. Check the path'],
  ['ENOTDIR', 'STORE_UNAVAILABLE', NO_FOLDER],
  ['EEXIST', 'STORE_UNAVAILABLE', NO_FOLDER],
  ['EISDIR', 'STORE_UNAVAILABLE', 'is a folder. Give the path of a file in it'],
  ['ELOOP', 'STORE_UNAVAILABLE', 'cannot be opened: its path has a loop of symbolic links. Check the path'],
  ['ENAMETOOLONG', 'STORE_UNAVAILABLE', 'cannot be opened: its path is too long. Choose another'],
];

/** SQLite's messages for tables that differ from those of the migrations. */
const OTHER_SCHEMA =
  /^(?:no such (?:table|column|module)|unrecognized option|parse error|error in tokenizer|table \S+ has)/;
const DAMAGED_SCHEMA: readonly Cause[] = [
  [
    'SQLITE_ERROR',
    'STORE_CORRUPT',
    'is damaged: its tables differ from those that svc-api created. Restore it from a backup',
  ],
];

/** Turns an error of SQLite or the file system into one for users. */
export function sqliteError(error: unknown, location: string): Error {
  const message = error instanceof Error ? error.message : '';
  const [, column] = /^UNIQUE constraint failed: api_keys\.(\w+)/.exec(message) ?? [];
  if (driverCodeOf(error) === 'SQLITE_ERROR' && OTHER_SCHEMA.test(message))
    return storeError(error, location, DAMAGED_SCHEMA);
  return takenError(column, error) ?? storeError(error, location, causesAt(location, error));
}

/** SQLite uses the same codes for a read-only file system and for missing rights. */
function causesAt(location: string, error: unknown): readonly Cause[] {
  if (!/^SQLITE_(?:READONLY|CANTOPEN)/.test(driverCodeOf(error)) || !isOnReadOnlyFileSystem(location)) return CAUSES;
  return [['SQLITE_', 'STORE_READONLY', READ_ONLY_FILE_SYSTEM]];
}

function isOnReadOnlyFileSystem(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return driverCodeOf(error) === 'EROFS';
  }
}

/** True for a failure of the database, not of a statement that is wrong or breaks a rule of a table. */
export function isSqliteFailure(error: unknown): boolean {
  return /^SQLITE_(?!CONSTRAINT|ERROR|MISMATCH|RANGE|TOOBIG)/.test(driverCodeOf(error));
}

/** True if another process holds the lock, so that a retry can succeed. */
export function isLocked(error: unknown): boolean {
  const code = driverCodeOf(error);
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}

/**
 * True if the -wal file does not match the -shm file, because one of them was removed while programs had it open. A
 * truncated database file has another code.
 */
export function isMixedUp(error: unknown): boolean {
  return driverCodeOf(error) === 'SQLITE_IOERR_SHORT_READ';
}
