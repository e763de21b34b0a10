import { chmodSync, closeSync, constants, fchmodSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { KeysError } from '../../keys/errors.ts';

/** Which file a path leads to: it changes when another one is moved there. */
export interface FileIdentity {
  dev: number;
  ino: number;
}

/**
 * Makes sure that the store's file is there. A new one has mode 0600 and new folders have 0700, whatever the umask;
 * SQLite gives its -wal and -shm files the mode of the file. What exists is left as it is.
 * @returns true when the file is new
 */
export function createStoreFile(path: string): boolean {
  createFolder(dirname(path));
  try {
    const file = openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW | constants.O_RDWR, 0o600);
    fchmodSync(file, 0o600);
    closeSync(file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Which file the store is now. @throws KeysError STORE_UNAVAILABLE when the path leads to something else */
export function identifyStoreFile(path: string): FileIdentity {
  const stat = statSync(path);
  if (!stat.isFile()) {
    throw new KeysError('STORE_UNAVAILABLE', `The key store ${path} is not a file. Give the path of a file.`);
  }
  return { dev: stat.dev, ino: stat.ino };
}

/** Tells whether two identities are those of one file, or of none. */
export function isSameFile(one: FileIdentity | undefined, other: FileIdentity | undefined): boolean {
  return one?.dev === other?.dev && one?.ino === other?.ino;
}

/** The files that SQLite keeps beside an open store, by their path. */
export type SideFiles = ReadonlyMap<string, FileIdentity>;

export function identifySideFiles(path: string): SideFiles {
  const found = new Map<string, FileIdentity>();
  for (const side of [`${path}-wal`, `${path}-shm`]) {
    const stat = statSync(side, { throwIfNoEntry: false });
    if (stat) found.set(side, { dev: stat.dev, ino: stat.ino });
  }
  return found;
}

/**
 * Removes what a store has left beside its path after another file was moved there: SQLite would read the changes in it
 * into that one. Side files that came with the other file stay.
 */
export function removeSideFiles(left: SideFiles): void {
  for (const [path, identity] of left) {
    if (isSameFile(statSync(path, { throwIfNoEntry: false }), identity)) rmSync(path, { force: true });
  }
}

/** One folder after the other, because the umask may take away the right to enter the one just made. */
function createFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })) return;
  createFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
    chmodSync(folder, 0o700);
  } catch (error) {
    // Another process may have made it just now.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
