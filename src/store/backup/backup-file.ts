import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';
import { createStoreFile, identifySideFiles, removeSideFiles, sideFilesOf } from '../sqlite/sqlite-file.ts';

/** After this long without a change, a part of a backup is one that was left behind, in milliseconds. */
const ABANDONED_MS = 3_600_000;

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
      const sideFiles = identifySideFiles(this.path);
      if (this.#overwrite || !tryLink(this.partial, this.path)) renameSync(this.partial, this.path);
      else unlinkSync(this.partial);
      // Whatever opens it must not take the -wal of the file that was there for its own.
      removeSideFiles(sideFiles);
      sync(dirname(this.path));
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

/** Brings a file or folder to the disk. */
export function sync(path: string): void {
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
export function removeAbandoned(path: string, kind: 'partial' | 'restore'): void {
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
