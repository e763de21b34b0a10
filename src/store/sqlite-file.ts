import { chmodSync, closeSync, constants, fchmodSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { KeysError } from '../keys/errors.ts';

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

function createFolder(folder: string): void {
  let first = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  // The umask may have taken bits away, from the first new folder to the last.
  for (let made = folder; made.length >= first.length; made = dirname(made)) chmodSync(made, 0o700);
}
