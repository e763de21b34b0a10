import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  openSync,
  readSync,
  realpathSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type Database from 'better-sqlite3';
import { isKeysError, KeysError } from '../../keys/basics/index.ts';
import { isLocked, sqliteError } from './sqlite-errors.ts';

/** The identity of the file behind a path, which changes when another one is moved there. */
export interface FileIdentity {
  dev: number;
  ino: number;
}

/**
 * Creates the store's file in an existing folder if it is missing, with mode 0600 regardless of the umask. SQLite gives
 * its -wal and -shm files the same mode and owner. A file created by root gets the owner of its folder, so that root
 * does not lock out a service's user. An existing file stays as it is.
 * @returns true if the file is new
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

/** True if there may be a store at the path. An empty file is none. @throws KeysError STORE_UNAVAILABLE */
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

/** True if both identities are of the same file, or both undefined. */
export function isSameFile(one: FileIdentity | undefined, other: FileIdentity | undefined): boolean {
  return one?.dev === other?.dev && one?.ino === other?.ino;
}

/** The files that SQLite keeps next to an open store, by path. */
export type SideFiles = ReadonlyMap<string, FileIdentity>;

/** The paths of the files that SQLite keeps beside a store, and applies to it. */
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
 * True if one of -wal and -shm, which belong together, is still the one that was opened, while others use it with a new
 * one of the other kind. Opening a store creates an empty -wal file, which gets new changes.
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
 * Removes the side files of a moved store: SQLite would apply them to the file that is now at its path. Side files that
 * came with that file stay.
 */
export function removeSideFiles(sideFiles: SideFiles): void {
  for (const [path, identity] of sideFiles) {
    if (isSameFile(statSync(path, { throwIfNoEntry: false }), identity)) rmSync(path, { force: true });
  }
}

/**
 * The most that a deletion writes while another program reads, as Litestream always does: about 12 pages in the -wal
 * file, with its audit entry. Every key can be disabled and deleted; with many keys, the reserve is for this number of
 * changes.
 */
const CHANGE_BYTES = 56 << 10;
const RESERVED_CHANGES = 300;
/** The size of a store without keys, and the least that each key adds. */
const EMPTY_BYTES = 320 << 10;
const KEY_BYTES = 700;
const MIN_RESERVE_BYTES = 1 << 20;
const CHUNK_BYTES = 1 << 16;
/** The first piece to be given up; if that is not enough, twice as much. */
const PIECE_BYTES = 1 << 18;

/** @param bytes the size of a store */
function reserveFor(bytes: number): number {
  const changes = Math.min((2 * Math.max(bytes - EMPTY_BYTES, 0)) / KEY_BYTES, RESERVED_CHANGES);
  return Math.max(Math.ceil(changes) * CHANGE_BYTES, MIN_RESERVE_BYTES);
}

/** A file beside the store that reserves space, and is given up when the disk is full and a key must be revoked. */
export class Reserve {
  readonly #path: string;
  /** How much work is using its space. */
  #given = 0;

  /** @param path that of the store */
  constructor(path: string) {
    this.#path = path;
  }

  /** Reserves the available space, up to the size of the reserve; nothing without the right to write. */
  keep(): void {
    if (this.#given > 0) return;
    try {
      const store = realpathSync(this.#path);
      const path = `${store}-reserve`;
      const wanted = reserveFor(statSync(store).size);
      if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) >= wanted) return;
      const { O_CREAT, O_APPEND, O_WRONLY, O_NOFOLLOW } = constants;
      const file = openSync(path, O_CREAT | O_APPEND | O_WRONLY | O_NOFOLLOW, 0o600);
      try {
        fchmodSync(file, 0o600); // Whatever the umask.
        const { uid, gid } = statSync(store);
        if (process.geteuid?.() === 0) fchownSync(file, uid, gid);
        // Random bytes, since a compressing file system would store zeros in no space.
        for (let { size } = fstatSync(file); size < wanted;)
          size += writeSync(file, randomBytes(Math.min(CHUNK_BYTES, wanted - size)));
      } finally {
        closeSync(file);
      }
    } catch {
      // The rest is reserved when there is space.
    }
  }

  /** Runs work, and repeats it with more and more of the reserve while the disk is full. @throws errors of `work` */
  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#given += 1;
    let isUsed = false;
    try {
      for (let piece = PIECE_BYTES; ; piece *= 2)
        try {
          return await work();
        } catch (error) {
          if (!isFull(error, this.#path) || !this.#give(piece)) throw error;
          isUsed = true;
        }
    } finally {
      this.#given -= 1;
      if (isUsed) this.keep();
    }
  }

  /** Returns true if there was anything left. */
  #give(bytes: number): boolean {
    const path = `${realpathSync(this.#path)}-reserve`;
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (size > 0) truncateSync(path, Math.max(size - bytes, 0));
    return size > 0;
  }
}

function isFull(error: unknown, path: string): boolean {
  const known = sqliteError(error, path);
  return isKeysError(known) && known.code === 'STORE_FULL';
}

/** The mark of a store's last change, in its table `last_change`, and of the one before it: each has a random id. */
export interface LastChange {
  id: string;
  previousId: string;
}

/** The id of the change before the first one (RFC 9562, section 5.9). */
const NO_CHANGE = '00000000-0000-0000-0000-000000000000';

/**
 * The bytes that SQLite stores before the ids in the only row of `last_change`: 75 bytes, row 1, a text of 72 bytes.
 */
const ROW_HEAD = Buffer.of(75, 1, 3, 0x81, 0x1d);
const IDS = /^([0-9a-f-]{36})([0-9a-f-]{36})$/;
const LEAF_OF_TABLE = 13;
/** The size of a page that its header writes as 1. */
const [DATABASE_HEADER_BYTES, LARGEST_PAGE] = [100, 65_536];
const [WAL_HEADER_BYTES, FRAME_HEADER_BYTES] = [32, 24];

/** The last change in a database page; undefined for other pages. */
function lastChangeIn(page: Buffer): LastChange | undefined {
  if (page[0] !== LEAF_OF_TABLE || page.readUInt16BE(3) !== 1) return undefined;
  const row = page.subarray(page.readUInt16BE(8));
  if (!row.subarray(0, ROW_HEAD.length).equals(ROW_HEAD)) return undefined;
  const [, id, previousId] = IDS.exec(row.toString('latin1', ROW_HEAD.length, ROW_HEAD.length + 72)) ?? [];
  return id === undefined || previousId === undefined ? undefined : { id, previousId };
}

/** True if a file with this last change can be the store at a change, or just before it. */
function precedes(inFile: LastChange | undefined, { id, previousId }: LastChange): boolean {
  return inFile ? inFile.id === id || inFile.id === previousId : previousId === NO_CHANGE;
}

/** Descriptors by device and inode, each with how many use it. */
const descriptors = new Map<string, { file: number; users: number }>();

/**
 * The store's file itself, without SQLite's side files. All connections of a process share a descriptor: closing one
 * would release the locks that SQLite holds for the others (POSIX.1, fcntl).
 */
export class MainFile {
  readonly identity: FileIdentity;
  readonly #file: number;

  /** @throws KeysError STORE_UNAVAILABLE; an error of the file system */
  constructor(path: string) {
    this.identity = identifyStoreFile(path);
    const shared = descriptors.get(this.#key) ?? { file: openSync(path, 'r'), users: 0 };
    shared.users += 1;
    descriptors.set(this.#key, shared);
    this.#file = shared.file;
  }

  /** The last change in a page of the file. */
  lastChange(page: number, pageBytes: number): LastChange | undefined {
    const bytes = Buffer.alloc(pageBytes);
    const read = readSync(this.#file, bytes, 0, pageBytes, (page - 1) * pageBytes);
    return read === pageBytes ? lastChangeIn(bytes) : undefined;
  }

  /**
   * True if the file is as long as its header says (https://www.sqlite.org/fileformat2.html#in_header_database_size).
   */
  isWhole(): boolean {
    const header = Buffer.alloc(DATABASE_HEADER_BYTES);
    if (readSync(this.#file, header, 0, header.length, 0) < header.length) return false;
    const [pageBytes, pages] = [header.readUInt16BE(16), header.readUInt32BE(28)];
    if (header.readUInt32BE(24) !== header.readUInt32BE(92)) return true;
    return fstatSync(this.#file).size >= pages * (pageBytes === 1 ? LARGEST_PAGE : pageBytes);
  }

  /** Ends its use, after SQLite has closed the file. */
  close(): void {
    const shared = descriptors.get(this.#key)!;
    shared.users -= 1;
    if (shared.users > 0) return;
    descriptors.delete(this.#key);
    closeSync(shared.file);
  }

  get #key(): string {
    return `${this.identity.dev}:${this.identity.ino}`;
  }
}

/** The last change of a database seen by a connection, compared with the file itself. */
export class KnownChange {
  readonly #main: MainFile;
  readonly #pageBytes: number;
  readonly #readPage: Database.Statement<[], number>;
  readonly #readIds: Database.Statement<[], string>;
  /** The number of the page with the change. */
  #page = 0;
  #change: LastChange = { id: '', previousId: '' };
  /** True if the file itself was seen to have the change: it must not go back after that. */
  #wasInFile = false;

  constructor(driver: Database.Database, main: MainFile) {
    this.#main = main;
    this.#pageBytes = driver.pragma('page_size', { simple: true }) as number;
    this.#readPage = driver
      .prepare<[], number>(`select rootpage from sqlite_schema where name = 'last_change'`)
      .pluck();
    this.#readIds = driver.prepare<[], string>('select ids from last_change').pluck();
    this.see();
  }

  /** Reads the last change as this connection sees it now. */
  see(): LastChange {
    const [page, ids] = [this.#readPage.get()!, this.#readIds.get()!];
    const change = { id: ids.slice(0, 36), previousId: ids.slice(36) };
    if (page !== this.#page || change.id !== this.#change.id)
      [this.#page, this.#change, this.#wasInFile] = [page, change, false];
    return change;
  }

  /** True if the file itself has the change, as it was seen. */
  isInFile(): boolean {
    return this.idInFile() === this.#change.id;
  }

  /** The id of the change in the file itself, if there is one. */
  idInFile(): string | undefined {
    return this.#inFile()?.id;
  }

  /** True if the file has the last change that this connection knows, or is about to get it. */
  isHeld(): boolean {
    for (let last: string | undefined; ;) {
      const inFile = this.#inFile();
      if (inFile?.id === this.#change.id) return (this.#wasInFile = true);
      if (!this.#wasInFile && precedes(inFile, this.#change)) return true;
      try {
        this.see();
      } catch (error) {
        if (isLocked(error)) throw error;
        return false;
      }
      // Another process may have written in between, even several times.
      const now = JSON.stringify([inFile, this.#change]);
      if (now === last) return false;
      last = now;
    }
  }

  #inFile(): LastChange | undefined {
    return this.#main.lastChange(this.#page, this.#pageBytes);
  }
}

/**
 * Refuses a file with the -wal file of another one beside it, which SQLite would apply to it.
 * @param file the target of the path
 * @throws KeysError STORE_REPLACED
 */
export function requireOwnWal(path: string, file: string, main: MainFile): void {
  const wal = `${file}-wal`;
  for (let last: string | undefined; ;) {
    if (!statSync(wal, { throwIfNoEntry: false })?.size) return;
    const inWal = lastChangesInWal(wal);
    if (!inWal) return; // Another program made it, which does not mark its changes.
    const inFile = main.lastChange(inWal.page, inWal.pageBytes);
    if (inWal.changes.some((change) => precedes(inFile, change))) return;
    // Another process may have written in between.
    const now = JSON.stringify([inFile, inWal]);
    if (now === last)
      throw new KeysError(
        'STORE_REPLACED',
        `The key store ${path} was replaced, but ${wal} belongs to the file that was there before. Stop every ` +
          `program that uses it. If the file is the right one, remove ${wal} and ${path}-shm.`,
      );
    last = now;
  }
}

/** The last changes in a -wal file, if any, that SQLite would apply: oldest first, with their page. */
function lastChangesInWal(path: string): { page: number; pageBytes: number; changes: LastChange[] } | undefined {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    // SQLite removes it when the last program closes the store.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const header = Buffer.alloc(WAL_HEADER_BYTES);
    if (readSync(file, header, 0, WAL_HEADER_BYTES, 0) < WAL_HEADER_BYTES) return undefined;
    const pageBytes = header.readUInt32BE(8);
    const frame = Buffer.alloc(FRAME_HEADER_BYTES + pageBytes);
    const changes: LastChange[] = [];
    let page = 0;
    for (let at = WAL_HEADER_BYTES; readSync(file, frame, 0, frame.length, at) === frame.length; at += frame.length) {
      // Frames of an earlier round through the file have another salt.
      if (frame.compare(header, 16, 24, 8, 16) !== 0) break;
      const change = lastChangeIn(frame.subarray(FRAME_HEADER_BYTES));
      if (!change) continue;
      page = frame.readUInt32BE(0);
      changes.push(change);
    }
    return changes.length > 0 ? { page, pageBytes, changes } : undefined;
  } finally {
    closeSync(file);
  }
}
