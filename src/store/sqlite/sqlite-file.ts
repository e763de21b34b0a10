import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  rmSync,
  type Stats,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { isKeysError, KeysError } from '../../keys/errors.ts';
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

const OTHERS_WRITE = 0o022;
const ALL_WRITE = 0o002;
const ALL_ACCESS = 0o007;
const OWNER_ACCESS = 0o700;
const STICKY = 0o1000;

/** Creates the file of a store. Nothing is left where others could replace it. @returns whether the file is new */
export function createStore(path: string): boolean {
  createFolder(dirname(path));
  requireSecureFolder(dirname(path));
  return createStoreFile(path);
}

/**
 * Refuses a store that other users could write or replace: they could give themselves keys. The store belongs to the
 * user of the process or to root; root also opens that of another user in this user's own folder. A store that all can
 * read, such as a restored copy, is made private.
 * @param options.repairs whether that is done
 * @throws KeysError STORE_INSECURE; an error of the file system
 */
export function requireSecureFile(path: string, { repairs = true } = {}): void {
  const folder = requireSecureFolder(dirname(path));
  const user = process.geteuid?.();
  if (!folder || user === undefined) return;
  const belongsToOthers = ({ uid }: Stats) => uid !== user && uid !== 0 && !(user === 0 && uid === folder.uid);

  const entry = lstatSync(path);
  if (belongsToOthers(entry)) throw belongsTo(entry.uid, path);
  if (entry.isSymbolicLink()) return requireSecureFile(realpathSync(path), { repairs });
  if ((entry.mode & OTHERS_WRITE) !== 0) throw writableByOthers(entry, path);
  // SQLite removes them when the last program closes the store, which may be just now.
  const sideFiles = sideFilesOf(path).filter((side) => {
    const stat = lstatSync(side, { throwIfNoEntry: false });
    if (!stat) return false;
    if (belongsToOthers(stat) || !stat.isFile() || (stat.mode & OTHERS_WRITE) !== 0) throw foreignSideFile(side, path);
    return true;
  });
  if (repairs && entry.uid === user && (entry.mode & ALL_ACCESS) !== 0)
    for (const file of [path, ...sideFiles]) makePrivate(file, entry.mode);
}

/**
 * Requires that others can replace neither what is in a folder nor the folder itself. In a sticky one, such as /tmp,
 * they cannot replace what is not theirs.
 * @returns what is known of the folder; nothing on Windows, which has no modes
 * @throws KeysError STORE_INSECURE; an error of the file system
 */
function requireSecureFolder(folder: string): Stats | undefined {
  const user = process.geteuid?.();
  if (user === undefined) return undefined;
  const stat = statSync(folder);
  const belongsToOthers = user !== 0 && stat.uid !== user && stat.uid !== 0;
  if (belongsToOthers) throw replaceable(folder, `belongs to another user (${stat.uid})`);
  const othersWrite = isOwnGroup(stat, user) ? ALL_WRITE : OTHERS_WRITE;
  if (isWritable(stat, othersWrite)) throw replaceable(folder, `can be written by others (mode ${modeOf(stat)})`);
  for (let above = dirname(folder); above !== dirname(above); above = dirname(above)) {
    const outer = statSync(above);
    if (isWritable(outer, ALL_WRITE)) throw replaceable(above, `can be written by others (mode ${modeOf(outer)})`);
  }
  return stat;
}

function isWritable({ mode }: Stats, by: number): boolean {
  return (mode & by) !== 0 && (mode & STICKY) === 0;
}

/** Whether a folder belongs to the group that many systems make for each user, with the user's number. */
function isOwnGroup({ gid }: Stats, user: number): boolean {
  return user !== 0 && gid === user && process.getegid?.() === user;
}

function makePrivate(path: string, mode: number): void {
  try {
    chmodSync(path, mode & OWNER_ACCESS);
  } catch {
    // Some file systems have no modes of their own.
  }
}

function modeOf({ mode }: Stats): string {
  return `0${(mode & 0o7777).toString(8)}`;
}

function belongsTo(owner: number, path: string): KeysError {
  const remedy = 'Run as that user, or choose another path';
  return new KeysError('STORE_INSECURE', `The key store ${path} belongs to another user (${owner}). ${remedy}.`);
}

function writableByOthers(stat: Stats, path: string): KeysError {
  const reason = `can be written by others (mode ${modeOf(stat)}), who may have given themselves keys`;
  return new KeysError('STORE_INSECURE', `The key store ${path} ${reason}. Check its keys, and run chmod 600 on it.`);
}

function replaceable(folder: string, reason: string): KeysError {
  const remedy = 'Run chmod go-w on it, or keep the store in a folder of its own';
  return new KeysError('STORE_INSECURE', `The folder ${folder} of the key store ${reason}. ${remedy}.`);
}

function foreignSideFile(side: string, path: string): KeysError {
  const reason = `${side} was put there by others, or they can write it, and it would be applied to the key store`;
  return new KeysError('STORE_INSECURE', `The key store ${path} cannot be opened: ${reason}. Check and remove it.`);
}

/** Enough for some hundred deletions, with their entries of the audit log. */
const RESERVE_BYTES = 1 << 20;
const CHUNK_BYTES = 1 << 16;

/** A file beside the store that takes up room, and is given up where the disk is full and a key must be revoked. */
export class Reserve {
  readonly #path: string;
  /** How much work is under way in its room. */
  #given = 0;

  /** @param path that of the store */
  constructor(path: string) {
    this.#path = path;
  }

  /** Takes up what room there is, up to the size of the reserve. Without the right to write, there is none. */
  keep(): void {
    if (this.#given > 0) return;
    try {
      const store = realpathSync(this.#path);
      const path = `${store}-reserve`;
      if (statSync(path, { throwIfNoEntry: false })?.size === RESERVE_BYTES) return;
      const { O_CREAT, O_APPEND, O_WRONLY, O_NOFOLLOW } = constants;
      const file = openSync(path, O_CREAT | O_APPEND | O_WRONLY | O_NOFOLLOW, 0o600);
      try {
        fchmodSync(file, 0o600); // Whatever the umask.
        const { uid, gid } = statSync(store);
        if (process.geteuid?.() === 0) fchownSync(file, uid, gid);
        // A file system that compresses would make nothing of zeros.
        for (let { size } = fstatSync(file); size < RESERVE_BYTES;)
          size += writeSync(file, randomBytes(Math.min(CHUNK_BYTES, RESERVE_BYTES - size)));
      } finally {
        closeSync(file);
      }
    } catch {
      // The rest is taken up when there is room.
    }
  }

  /** Runs work, and again without the reserve where the disk is full. @throws what `work` throws */
  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!isFull(error, this.#path)) throw error;
    }
    this.#given += 1;
    try {
      rmSync(`${realpathSync(this.#path)}-reserve`, { force: true });
      return await work();
    } finally {
      this.#given -= 1;
      this.keep();
    }
  }
}

function isFull(error: unknown, path: string): boolean {
  const known = sqliteError(error, path);
  return isKeysError(known) && known.code === 'STORE_FULL';
}
