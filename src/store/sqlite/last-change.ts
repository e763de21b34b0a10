import { closeSync, openSync, readSync, statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { KeysError } from '../../keys/errors.ts';
import { isLocked } from './sqlite-errors.ts';
import { type FileIdentity, identifyStoreFile } from './sqlite-file.ts';

/** What marks the last change of a store, in its table `last_change`, and the one before it: each has a random id. */
export interface LastChange {
  id: string;
  previousId: string;
}

/** The id of the change before the first one (RFC 9562, section 5.9). */
const NO_CHANGE = '00000000-0000-0000-0000-000000000000';

/** What SQLite stores before the ids of the one row of `last_change`: 75 bytes, row 1, a text of 72 bytes. */
const ROW_HEAD = Buffer.of(75, 1, 3, 0x81, 0x1d);
const IDS = /^([0-9a-f-]{36})([0-9a-f-]{36})$/;
const LEAF_OF_TABLE = 13;
const [WAL_HEADER_BYTES, FRAME_HEADER_BYTES] = [32, 24];

/** The last change, as the page of a database has it; undefined for other pages. */
function lastChangeIn(page: Buffer): LastChange | undefined {
  if (page[0] !== LEAF_OF_TABLE || page.readUInt16BE(3) !== 1) return undefined;
  const row = page.subarray(page.readUInt16BE(8));
  if (!row.subarray(0, ROW_HEAD.length).equals(ROW_HEAD)) return undefined;
  const [, id, previousId] = IDS.exec(row.toString('latin1', ROW_HEAD.length, ROW_HEAD.length + 72)) ?? [];
  return id === undefined || previousId === undefined ? undefined : { id, previousId };
}

/** Whether a file with this last change may be what a store was at a change, or just before it. */
function precedes(inFile: LastChange | undefined, { id, previousId }: LastChange): boolean {
  return inFile ? inFile.id === id || inFile.id === previousId : previousId === NO_CHANGE;
}

/** Descriptors by device and inode, each with how many use it. */
const descriptors = new Map<string, { file: number; users: number }>();

/**
 * The store's file itself, without what SQLite keeps beside it. All connections of a process share a descriptor:
 * closing one would release the locks that SQLite holds for the others (POSIX.1, fcntl).
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

  /** The last change that a page of the file has. */
  lastChange(page: number, pageBytes: number): LastChange | undefined {
    const bytes = Buffer.alloc(pageBytes);
    const read = readSync(this.#file, bytes, 0, pageBytes, (page - 1) * pageBytes);
    return read === pageBytes ? lastChangeIn(bytes) : undefined;
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

/** The last change of a database as a connection has seen it, compared with what the file itself has. */
export class KnownChange {
  readonly #main: MainFile;
  readonly #pageBytes: number;
  readonly #readPage: Database.Statement<[], number>;
  readonly #readIds: Database.Statement<[], string>;
  /** The number of the page that has it. */
  #page = 0;
  #change: LastChange = { id: '', previousId: '' };
  /** Whether the file itself was seen to have it: it must not go back then. */
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

  /** Reads it as this connection has it now. */
  see(): LastChange {
    const [page, ids] = [this.#readPage.get()!, this.#readIds.get()!];
    const change = { id: ids.slice(0, 36), previousId: ids.slice(36) };
    if (page !== this.#page || change.id !== this.#change.id)
      [this.#page, this.#change, this.#wasInFile] = [page, change, false];
    return change;
  }

  /** Whether the file itself has it, as it was seen. */
  isInFile(): boolean {
    return this.#inFile()?.id === this.#change.id;
  }

  /** Whether the file has the last change that this connection knows, or is still to get it. */
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
      // Another process may have written in between, several times.
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
 * Refuses a file beside which the -wal file of another one lies: SQLite would apply that to it.
 * @param file where the path leads to
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

/** The last changes in a -wal file, if any, as far as SQLite would apply it: oldest first, with their page. */
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
