import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  createWriteStream,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { givesRights, KeysError, printable, processUser } from '../../keys/basics/index.ts';
import {
  createStoreFile,
  type FileIdentity,
  identifySideFiles,
  identifyStoreFile,
  isSameFile,
  removeSideFiles,
  sideFilesOf,
} from '../sqlite/sqlite-file.ts';
import { createStore } from '../sqlite/store-access.ts';
import { sqliteError } from '../sqlite/sqlite-errors.ts';
import { APPLICATION_ID } from '../sqlite/sqlite-schema.ts';

/** After this long without a change, a part of a backup is one that was left behind, in milliseconds. */
const ABANDONED_MS = 3_600_000;

const OTHERS_WRITE = 0o022;
/** What an SQLite file begins with (its file format, section 1.3). */
const MAGIC = 'SQLite format 3\0';
/** Where the file format of SQLite (section 1.3) has the id of the program that a file belongs to. */
const APPLICATION_ID_AT = 68;

/** A file that is made under another name, and gets its own once it is whole and on disk. */
export class BackupFile {
  readonly path: string;
  /** Where it is until then: mode 0600 from its first moment. */
  readonly partial: string;
  readonly #overwrite: boolean;

  private constructor(path: string, partial: string, overwrite: boolean) {
    this.path = path;
    this.partial = partial;
    this.#overwrite = overwrite;
  }

  /** @throws KeysError BACKUP_EXISTS, BACKUP_UNAVAILABLE */
  static create(path: string, { overwrite }: { overwrite: boolean }): BackupFile {
    requireReplaceable(path, overwrite);
    const partial = `${path}.partial-${randomBytes(4).toString('hex')}`;
    try {
      removeAbandoned(path, 'partial');
      createStoreFile(partial);
    } catch (error) {
      throw unwritable(path, error);
    }
    return new BackupFile(path, partial, overwrite);
  }

  /** Gives it its name. What was there is replaced at once, or stays. @throws KeysError BACKUP_… */
  publish(): void {
    try {
      sync(this.partial);
      requireReplaceable(this.path, this.#overwrite);
      putInPlace(this.partial, this.path, { mayReplace: this.#overwrite });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw exists(this.path);
      throw error instanceof KeysError ? error : unwritable(this.path, error);
    }
  }

  /** Removes it, unless it has its name. */
  discard(): void {
    removeFiles(this.partial);
  }
}

/** Removes a file of a store that nobody uses, with those that SQLite and svc-api keep beside it. */
export function removeFiles(path: string): void {
  for (const file of [path, ...sideFilesOf(path)]) rmSync(file, { force: true });
}

/** Gives a file the path of another one, at once. Whatever opens it must not take the -wal of that one for its own. */
function putInPlace(file: string, path: string, { mayReplace }: { mayReplace: boolean }): void {
  const sideFiles = identifySideFiles(path);
  if (mayReplace || !tryLink(file, path)) renameSync(file, path);
  else unlinkSync(file);
  removeSideFiles(sideFiles);
  sync(dirname(path));
}

/** Brings a file or folder to the disk. */
function sync(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Gives a file a second name, where the file system can. @throws an error of the file system, EEXIST among them */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return false;
    throw error;
  }
}

function requireReplaceable(path: string, overwrite: boolean): void {
  let stat;
  try {
    stat = lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw unwritable(path, error);
  }
  if (!stat) {
    const left = sideFilesOf(path).find((file) => lstatSync(file, { throwIfNoEntry: false }));
    if (left !== undefined && !overwrite) throw exists(left);
    return;
  }
  if (!stat.isFile()) {
    const what = stat.isDirectory() ? 'a folder' : stat.isSymbolicLink() ? 'a symbolic link' : 'not a regular file';
    throw unavailable(path, `cannot be written: it is ${what}. Give the path of a file`);
  }
  if (!overwrite) throw exists(path);
}

/**
 * Removes what programs left beside a path that were killed.
 * @param kind what such files are called after that path
 */
function removeAbandoned(path: string, kind: 'partial' | 'restore'): void {
  const prefix = `${basename(path)}.${kind}-`;
  for (const name of namesIn(dirname(path))) {
    const file = join(dirname(path), name);
    if (!name.startsWith(prefix) || !/^[0-9a-f]{8}(-wal|-shm|-journal)?$/.test(name.slice(prefix.length))) continue;
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat && Date.now() - stat.mtimeMs > ABANDONED_MS) rmSync(file, { force: true });
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // What is done there next tells why.
  }
}

function exists(path: string): KeysError {
  const remedy = 'Pass --overwrite to replace it, or choose another name';
  return new KeysError('BACKUP_EXISTS', `${printable(path, 200)} exists already. ${remedy}.`);
}

function unwritable(path: string, error: unknown): KeysError {
  const { code = 'unknown' } = error as NodeJS.ErrnoException;
  const remedy = 'Check that the folder exists, that this user may write it, and that there is room';
  return unavailable(path, `cannot be written (${code}). ${remedy}`, { cause: error });
}

/** The error for a backup that cannot be read or written. */
export function unavailable(path: string, reason: string, options?: ErrorOptions): KeysError {
  return new KeysError('BACKUP_UNAVAILABLE', `The backup ${printable(path, 200)} ${reason}.`, options);
}

/** The error for a backup that cannot be used. */
export function invalid(path: string, reason?: string, options?: ErrorOptions): KeysError {
  const detail = reason === undefined ? '' : ` (${printable(reason, 200)})`;
  return new KeysError(
    'BACKUP_INVALID',
    `The backup ${printable(path, 200)} is damaged, incomplete, or no backup of a key store${detail}. Use another one.`,
    options,
  );
}

/** Whether a path leads to an SQLite store that is there, by whatever way, or to what is kept beside it. */
export function belongsToStore(path: string, location: string): boolean {
  const place = realpathSync(location);
  const own = [location, ...sideFilesOf(place), `${place}-reserve`];
  const file = readIdentity(path);
  const folder = readIdentity(dirname(path));
  return own.some(
    (each) =>
      (file !== undefined && isSameFile(file, readIdentity(each))) ||
      (basename(path) === basename(each) && folder !== undefined && isSameFile(folder, readIdentity(dirname(each)))),
  );
}

function readIdentity(path: string): FileIdentity | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined; // What is done there next tells why.
  }
}

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
  let file: FileHandle;
  try {
    // Opening a pipe would wait for its writer otherwise.
    file = await open(from, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    if (isWal && code === 'ENOENT') return;
    throw unavailable(from, code === 'ENOENT' ? 'does not exist. Check the path' : `cannot be read (${code})`, {
      cause: error,
    });
  }
  try {
    requireOwnFile(file.fd, from);
    if (!isWal) requireSqlite(file.fd, from);
    createStore(to);
    await pipeline(file.createReadStream({ start: 0 }), createWriteStream(to, { flags: 'r+' }));
  } catch (error) {
    if (error instanceof KeysError) throw error;
    throw unavailable(from, `cannot be copied (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`, {
      cause: error,
    });
  } finally {
    await file.close(); // The stream may have done so.
  }
}

/** Others could have given themselves keys in it. Root also takes that of another user. */
function requireOwnFile(file: number, path: string): void {
  const stat = fstatSync(file);
  if (!stat.isFile()) throw unavailable(path, 'is not a regular file. Check the path');
  const user = processUser();
  if (user === undefined) return;
  const isForeign = user !== 0 && stat.uid !== user && stat.uid !== 0;
  if (!isForeign && !givesRights(stat, OTHERS_WRITE)) return;
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
  if (head.toString('latin1', 0, read) !== MAGIC) throw invalid(path, 'it is not an SQLite file');
}

/**
 * Puts a file in the place of an SQLite store, at once. What was there is kept, with its -wal. Servers that run on it
 * use the new one from the next request on.
 * @param file whole and closed; it is moved
 * @param kept where the store is that was there before
 * @returns whether there was one
 * @throws KeysError STORE_…
 */
export function replaceStoreFile(file: string, store: string, kept: string): boolean {
  try {
    sync(file);
    const isThere = statSync(store, { throwIfNoEntry: false })?.isFile() ?? false;
    // SQLite keeps its files next to the one that a link leads to.
    const place = isThere ? realpathSync(store) : store;
    if (isThere) keep(place, kept);
    if (existsSync(`${place}-wal`)) keepCopy(`${place}-wal`, `${kept}-wal`);
    if (isThere) chmodSync(kept, 0o600);
    putInPlace(file, place, { mayReplace: true });
    return isThere;
  } catch (error) {
    throw sqliteError(error, store);
  }
}

/** Gives a file a second name, so that there is no moment without it. */
function keep(file: string, kept: string): void {
  try {
    linkSync(file, kept);
  } catch {
    keepCopy(file, kept);
  }
}

function keepCopy(file: string, kept: string): void {
  createStoreFile(kept);
  copyFileSync(file, kept, constants.COPYFILE_FICLONE);
}

/**
 * Requires that a file that is to be replaced belongs to no other program. One that is damaged may be replaced.
 * @throws KeysError STORE_FOREIGN, STORE_UNAVAILABLE
 */
export function requireNoForeignFile(path: string): void {
  if (!statSync(path, { throwIfNoEntry: false })) return;
  identifyStoreFile(path);
  const head = Buffer.alloc(APPLICATION_ID_AT + 4);
  const file = openSync(path, 'r');
  try {
    readSync(file, head, 0, head.length, 0);
  } finally {
    closeSync(file);
  }
  const isForeign =
    head.toString('latin1', 0, MAGIC.length) === MAGIC && head.readInt32BE(APPLICATION_ID_AT) !== APPLICATION_ID;
  if (isForeign)
    throw new KeysError(
      'STORE_FOREIGN',
      `${path} is an SQLite file of another program, not a key store. Check the path.`,
    );
}
