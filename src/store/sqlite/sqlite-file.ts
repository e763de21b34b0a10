import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { KeysError } from '../../keys/errors.ts';
import { sqliteError } from './sqlite-errors.ts';

/** The file behind a path: it changes when another one is moved there. */
export interface FileIdentity {
  dev: number;
  ino: number;
}

/**
 * Creates the store's file if it is missing, with mode 0600, whatever the umask; its folder is there. SQLite gives its
 * -wal and -shm files the mode and the owner of the file. A file that root creates gets the owner of its folder, for
 * root must not lock out the user of a service. What exists stays as it is.
 * @returns whether the file is new
 */
export function createStoreFile(path: string): boolean {
  try {
    const file = openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW | constants.O_RDWR, 0o600);
    fchmodSync(file, 0o600);
    if (process.geteuid?.() === 0) {
      const { uid, gid } = statSync(dirname(path));
      fchownSync(file, uid, gid);
    }
    closeSync(file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Whether there may be a store at the path: an empty file is none. @throws KeysError STORE_UNAVAILABLE */
export function storeFileExists(path: string): boolean {
  try {
    const stat = statSync(path);
    return stat.size > 0 || !stat.isFile();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw sqliteError(error, path);
  }
}

/** The file at the path. @throws KeysError STORE_UNAVAILABLE if it is not a regular file */
export function identifyStoreFile(path: string): FileIdentity {
  const stat = statSync(path);
  if (!stat.isFile()) {
    throw new KeysError('STORE_UNAVAILABLE', `The key store ${path} is not a file. Give the path of a file.`);
  }
  return { dev: stat.dev, ino: stat.ino };
}

/** Whether two identities are those of the same file, or both of none. */
export function isSameFile(one: FileIdentity | undefined, other: FileIdentity | undefined): boolean {
  return one?.dev === other?.dev && one?.ino === other?.ino;
}

/** The files that SQLite keeps next to an open store, by path. */
export type SideFiles = ReadonlyMap<string, FileIdentity>;

/** The paths at which SQLite keeps files next to the store at a path, and applies them to it. */
export function sideFilesOf(path: string): string[] {
  return ['-wal', '-shm', '-journal'].map((suffix) => path + suffix);
}

/** The side files of the store at a path that exist. */
export function identifySideFiles(path: string): SideFiles {
  const found = new Map<string, FileIdentity>();
  for (const side of sideFilesOf(path)) {
    const stat = statSync(side, { throwIfNoEntry: false });
    if (stat) found.set(side, { dev: stat.dev, ino: stat.ino });
  }
  return found;
}

/**
 * Whether one of the two files that belong together, -wal and -shm, is still the one that was opened, and others use
 * it with a new one in the place of the other. Who opens a store creates an empty -wal, and writes its changes there.
 */
export function areShared(sideFiles: SideFiles, path: string): boolean {
  const [wal, shm] = [`${path}-wal`, `${path}-shm`].map((side) => {
    const stat = statSync(side, { throwIfNoEntry: false });
    const isOwn = stat !== undefined && isSameFile(stat, sideFiles.get(side));
    return { isOwn, isOthers: !isOwn && (stat?.size ?? 0) > 0 };
  });
  return (wal!.isOwn && shm!.isOthers) || (shm!.isOwn && wal!.isOthers);
}

/** Empties the -wal file of a store, unless another one is at its path. */
export function emptyWal(sideFiles: SideFiles): void {
  for (const [path, identity] of sideFiles)
    if (path.endsWith('-wal') && isSameFile(statSync(path, { throwIfNoEntry: false }), identity)) truncateSync(path);
}

/**
 * Removes the side files of a store that was moved away: SQLite would apply them to the file that is now at its path.
 * Side files that came with that file stay.
 */
export function removeSideFiles(sideFiles: SideFiles): void {
  for (const [path, identity] of sideFiles) {
    if (isSameFile(statSync(path, { throwIfNoEntry: false }), identity)) rmSync(path, { force: true });
  }
}

/**
 * Creates the store's folder if it is missing, and those above it, with mode 0700. One at a time: the umask may deny
 * access to the one just created.
 */
export function createFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })) return;
  createFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
    chmodSync(folder, 0o700);
  } catch (error) {
    // Another process may have created it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
