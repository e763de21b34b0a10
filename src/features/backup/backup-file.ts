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
  APPLICATION_ID,
  createStore,
  createStoreFile,
  type FileIdentity,
  identifySideFiles,
  identifyStoreFile,
  isSameFile,
  removeSideFiles,
  sideFilesOf,
  sqliteError,
} from '../../store/whole-store.ts';

/** A partial backup unchanged for this long is abandoned, in milliseconds. */
const ABANDONED_MS = 3_600_000;

const OTHERS_WRITE = 0o022;
/** The first bytes of an SQLite file (its file format, section 1.3). */
const MAGIC = 'SQLite format 3\0';
/** The position of the application id in an SQLite file (its file format, section 1.3). */
const APPLICATION_ID_AT = 68;

/** A backup or an export, which is written under a temporary name, and gets its own once it is complete and on disk. */
export class BackupFile {
  readonly path: string;
  /** The temporary path. The file has mode 0600 from the start. */
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

  /** Writes text into the file. @throws KeysError BACKUP_UNAVAILABLE; errors of the text */
  async write(text: AsyncIterable<string>): Promise<void> {
    try {
      await pipeline(text, createWriteStream(this.partial));
    } catch (error) {
      throw (error as NodeJS.ErrnoException).syscall === undefined ? error : unwritable(this.path, error);
    }
  }

  /** Gives the file its name. An existing file is replaced atomically, or kept. @throws KeysError BACKUP_… */
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

  /** Removes the file, unless it has its name. */
  discard(): void {
    removeFiles(this.partial);
  }
}

/** Removes a file of an unused store, with the files that SQLite and svc-api keep beside it. */
export function removeFiles(path: string): void {
  for (const file of [path, ...sideFilesOf(path)]) rmSync(file, { force: true });
}

/** Moves a file over another one atomically. Programs must not combine it with the -wal file of the replaced one. */
function putInPlace(file: string, path: string, { mayReplace }: { mayReplace: boolean }): void {
  const sideFiles = identifySideFiles(path);
  if (mayReplace || !tryLink(file, path)) renameSync(file, path);
  else unlinkSync(file);
  removeSideFiles(sideFiles);
  sync(dirname(path));
}

/** Flushes a file or folder to disk. */
function sync(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Adds a hard link to a file, if the file system supports it. @throws an error of the file system, such as EEXIST */
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
    throw unavailable(path, `cannot be written: it is ${what}. Give the path of a file`, { file: 'The file' });
  }
  if (!overwrite) throw exists(path);
}

/**
 * Removes temporary files of programs that were killed.
 * @param kind the suffix of such files after the path
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
  return unavailable(path, `cannot be written (${code}). ${remedy}`, { file: 'The file', cause: error });
}

/** The error for a file that cannot be read or written. */
export function unavailable(
  path: string,
  reason: string,
  { file = 'The backup', ...options }: ErrorOptions & { file?: string } = {},
): KeysError {
  return new KeysError('BACKUP_UNAVAILABLE', `${file} ${printable(path, 200)} ${reason}.`, options);
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

/** Refuses the path of an existing SQLite store, and of files that belong to it. @throws KeysError USAGE */
export function requireOther(path: string, location: string): void {
  if (!belongsToStore(path, location)) return;
  const what = `${printable(path, 200)} is the key store itself, or belongs to it`;
  throw new KeysError('USAGE', `${what}. Choose another file.`);
}

/** True if a path leads, in any way, to an existing SQLite store or to a file that belongs to it. */
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
 * Copies a backup to a temporary file, which is examined and can become the store: it cannot be swapped in between, and
 * the backup itself stays unchanged. Also copies a -wal file, which backups not made by svc-api can have.
 * @param near a path; the copy is created next to it with mode 0600
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
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
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

/**
 * Refuses a backup of another user, who could have added keys for themselves. Root also accepts backups of other users.
 */
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
 * Replaces the file of an SQLite store atomically. The old one is kept, with its -wal file. Running servers use the new
 * one from the next request on.
 * @param file complete and closed; it is moved
 * @param kept the new path of the old store
 * @returns true if there was an old store
 * @throws KeysError STORE_…
 */
export function replaceStoreFile(file: string, store: string, kept: string): boolean {
  try {
    sync(file);
    const isThere = statSync(store, { throwIfNoEntry: false })?.isFile() ?? false;
    // SQLite keeps its files next to the target of a link.
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

/** Links a file to a second name, so that the path is never without a file. */
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
 * Requires that a file to be replaced belongs to no other program. A damaged file can be replaced.
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
