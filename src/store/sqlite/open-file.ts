import { randomUUID } from 'node:crypto';
import { realpathSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type Database from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import { MAX_CHAIN_LENGTH } from '../../keys/authorization/index.ts';
import { debug, KeysError, millisecondsSince, trace } from '../../keys/basics/index.ts';
import { type FoundRow, type KeyRowBySecret, type MustExist, tracedKysely } from '../connection.ts';
import { retry } from '../retry.ts';
import { type FeatureTables, KEY_COLUMNS, type KeyRow, type RotatedSecretTable, type Tables } from '../tables.ts';
import { besideOthers, dialectOf, PRAGMAS, sqliteDialect, WriteThread } from './sqlite-driver.ts';
import type { ChangeMark } from './followers.ts';
import { isLocked, sqliteError } from './sqlite-errors.ts';
import {
  areShared,
  emptyWal,
  identifySideFiles,
  isSameFile,
  KnownChange,
  MainFile,
  removeSideFiles,
  requireOwnWal,
  type SideFiles,
} from './sqlite-file.ts';
import { requireSecureFile } from './store-access.ts';
import { migrateSqlite } from './sqlite-schema.ts';
import { openDatabase } from './database.ts';

/** Options without timing: its statements take no longer than measuring them. */
const NO_TIME = {};

/** Finds the rows of keys with prepared statements: whenever a key is checked for the first time, or refused. */
class KeyRows {
  readonly #byDigest: Database.Statement<[string, string], KeyRow>;
  readonly #rotated: Database.Statement<[string], Pick<RotatedSecretTable, 'key_id' | 'public_id'>>;
  readonly #byId: Database.Statement<[string], KeyRow>;
  readonly #family: (digest: string) => FoundRow;

  constructor(driver: Database.Database) {
    const select = `select ${KEY_COLUMNS.join(', ')} from api_keys`;
    this.#byDigest = driver.prepare(`${select} where digest = ? or previous_digest = ?`);
    this.#rotated = driver.prepare('select key_id, public_id from rotated_secrets where digest = ?');
    this.#byId = driver.prepare(`${select} where id = ?`);
    this.#family = driver.transaction((digest: string) => this.#find(digest));
  }

  /** The key of a secret with this digest, and the keys above it, all from one consistent state. */
  findByDigest(digest: string): FoundRow {
    trace(this.#byDigest.source, NO_TIME);
    const row = this.#byDigest.get(digest, digest);
    const isAlone = row ? !row.created_by : this.#rotated.get(digest) === undefined;
    return isAlone ? { row, ancestors: [] } : this.#family(digest);
  }

  #find(digest: string): FoundRow {
    const row = this.#byDigest.get(digest, digest) ?? this.#findByRotated(digest);
    const ancestors: KeyRow[] = [];
    for (let key: KeyRow | undefined = row; key?.created_by && ancestors.length < MAX_CHAIN_LENGTH;) {
      key = this.#byId.get(key.created_by);
      if (key) ancestors.push(key);
    }
    return { row, ancestors };
  }

  /** A join takes three times as long as both statements. */
  #findByRotated(digest: string): KeyRowBySecret | undefined {
    const rotated = this.#rotated.get(digest);
    const row = rotated && this.#byId.get(rotated.key_id);
    return row && { ...row, rotated_public_id: rotated.public_id };
  }
}

interface ChangeRow extends ChangeMark {
  /** Empty in rows of the audit log's head. */
  key_id: string;
}

/** Reads which keys were created, changed or deleted by any program since the last call. See `key_changes`. */
class ChangedKeys {
  readonly #since: Database.Statement<[number], ChangeRow>;
  readonly #latest: Database.Statement<[], ChangeRow>;
  readonly #at: Database.Statement<[number], ChangeRow>;
  /** The change that was read last. */
  #last: ChangeRow | undefined;

  constructor(driver: Database.Database) {
    this.#at = driver.prepare('select * from key_changes where number = ?');
    this.#since = driver.prepare('select * from key_changes where number >= ? order by number');
    this.#latest = driver.prepare('select * from key_changes order by number desc limit 1');
  }

  get last(): ChangeRow | undefined {
    return this.#last;
  }

  latest(): ChangeRow | undefined {
    return this.#latest.get();
  }

  markOf(number: number): string | undefined {
    return this.#at.get(number)?.mark;
  }

  /** Their ids; `any` for the first call, and if there were too many changes. */
  read(): readonly string[] | 'any' {
    const [first, ...others] = this.#last ? this.#since.all(this.#last.number) : [];
    // If the change read last is gone, others may be missing as well.
    if (!first || first.mark !== this.#last?.mark) {
      this.#last = this.#latest.get();
      return 'any';
    }
    this.#last = others.at(-1) ?? first;
    return others.flatMap(({ key_id }) => (key_id === '' ? [] : key_id));
  }
}

/** Thrown if the path leads to another file, before anything was changed. The work is repeated on that file. */
export class FileReplaced extends Error {}

/** Timeouts for the lock of the file, in milliseconds. */
export interface WaitTimes {
  /** In total. */
  lockWaitMs: number;
  /** Inside the driver, per attempt, which blocks the event loop. */
  busyTimeoutMs: number;
}

interface OpenFileOptions extends WaitTimes {
  mustExist: MustExist;
  /** The features that get tables. */
  features: readonly FeatureTables[];
  /** Called after each commit. */
  committed: () => void;
}

interface Parts {
  driver: Database.Database;
  db: Kysely<Tables>;
  /** The thread for writes, if others read at the same time. */
  thread: WriteThread | undefined;
  writer: Kysely<Tables>;
  main: MainFile;
  /** The files beside the store before it was opened. */
  before: SideFiles;
}

/** An open database file that can tell whether it is still the one at its path. */
export class OpenFile {
  readonly db: Kysely<Tables>;
  readonly #path: string;
  /** The target of the path. */
  readonly #file: string;
  readonly #driver: Database.Database;
  readonly #thread: WriteThread | undefined;
  readonly #writer: Kysely<Tables>;
  readonly #main: MainFile;
  readonly #sideFiles: SideFiles;
  readonly #dataVersion: Database.Statement<[], number>;
  readonly #changedKeys: ChangedKeys;
  readonly #keyRows: KeyRows;
  readonly #known: KnownChange;
  readonly #ownChanges: Database.Statement<[], number>;
  /** The file's `stat` when it was last compared. */
  #compared = { modifiedMs: 0, bytes: 0 };

  private constructor(path: string, file: string, { driver, db, thread, writer, main, before }: Parts) {
    this.db = db;
    this.#path = path;
    this.#file = file;
    this.#driver = driver;
    this.#thread = thread;
    this.#writer = writer;
    this.#main = main;
    this.#dataVersion = driver.prepare<[], number>('pragma data_version').pluck();
    this.#changedKeys = new ChangedKeys(driver);
    this.#keyRows = new KeyRows(driver);
    this.#known = new KnownChange(driver, main);
    this.#ownChanges = driver.prepare<[], number>('select total_changes()').pluck();
    // A file replaced during this may have been opened in its old state, which a later check detects.
    this.#sideFiles = new Map([...identifySideFiles(file), ...before]);
  }

  /** Opens the file at a path, and migrates it. @throws KeysError STORE_…; an error of SQLite or the file system */
  static async open(
    path: string,
    { lockWaitMs, busyTimeoutMs, mustExist, features, committed }: OpenFileOptions,
  ): Promise<OpenFile> {
    const main = new MainFile(path);
    try {
      requireSecureFile(path);
      // SQLite keeps its files next to the target of a link.
      const file = realpathSync(path);
      const before = identifySideFiles(file);
      requireOwnWal(path, file, main);
      // A command has no other work that a blocking write could delay.
      const thread = busyTimeoutMs === 0 ? new WriteThread(file, PRAGMAS) : undefined;
      const driver = openDatabase(file, { fileMustExist: true, timeout: busyTimeoutMs });
      const db = tracedKysely(dialectOf(driver, committed, thread !== undefined));
      const writer = thread ? tracedKysely(sqliteDialect(thread, committed)) : db;
      try {
        const deadline = performance.now() + lockWaitMs;
        const isRetryable = (error: unknown) => isLocked(error) && performance.now() <= deadline;
        const work = async () => {
          for (const pragma of PRAGMAS) driver.pragma(pragma);
          await migrateSqlite(db, { location: path, mustExist, features });
          const openFile = new OpenFile(path, file, { driver, db, thread, writer, main, before });
          openFile.#settleMigration();
          return openFile;
        };
        return await retry(work, { isRetryable });
      } catch (error) {
        driver.close();
        throw error;
      }
    } catch (error) {
      main.close();
      throw error;
    }
  }

  /** Writes the mark of a migration into the file itself, without which it could not be told from another one. */
  #settleMigration(): void {
    if (!this.#known.isInFile()) backfill(this.#driver);
    this.#known.isHeld();
  }

  /** A number that SQLite changes after writes of other connections. */
  dataVersion(): number {
    return this.#dataVersion.get()!;
  }

  /** See `ChangedKeys`. */
  changedKeys(): readonly string[] | 'any' {
    try {
      return this.#changedKeys.read();
    } catch (error) {
      if (isLocked(error)) throw error;
      // The file may have been replaced, which the next query finds out or reports.
      return 'any';
    }
  }

  /** The change that `changedKeys` read last. */
  get seenChange(): ChangeMark | undefined {
    return this.#changedKeys.last;
  }

  /** The last change that was committed. */
  latestChange(): ChangeMark | undefined {
    return this.#changedKeys.latest();
  }

  /** True if a change is one of this file. */
  hasChange({ number, mark }: ChangeMark): boolean {
    return this.#changedKeys.markOf(number) === mark;
  }

  /** See `Connection.findByDigest`. */
  findByDigest(digest: string): FoundRow | undefined {
    // A command has one connection, on which uncommitted changes of another part would be visible.
    return this.#driver.inTransaction ? undefined : this.#keyRows.findByDigest(digest);
  }

  /**
   * Runs work in a transaction, one at a time, while others can read through `db`, and marks the change, if there is
   * one. It returns once the change is in the file itself, so that nothing depends on the -wal file.
   * @throws FileReplaced if nothing was changed; errors of the work; a KeysError if the change may have been made and
   * must not be repeated, STORE_REPLACED if it may be lost
   */
  async change<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result> {
    const thread = this.#thread;
    if ((await thread?.start()) && !this.isSurelyCurrent()) {
      // The thread opened another file, and has read nothing yet.
      thread?.close();
      throw new FileReplaced();
    }
    const writer = thread ? this.#writer : this.db;
    /** How many rows the writing connection has changed. */
    const totalChanges = () => thread?.totalChanges ?? this.#ownChanges.get()!;
    let isDecided = false;
    let changes = 0;
    let previous: string | undefined;
    let result: Result;
    try {
      result = await writer.transaction().execute(async (transaction) => {
        const before = totalChanges();
        const made = await work(transaction);
        changes = totalChanges() - before;
        if (changes > 0) previous = await this.#mark(transaction);
        isDecided = true;
        return made;
      });
    } catch (error) {
      throw isDecided && !isLocked(error) ? sqliteError(error, this.#path) : error;
    }
    if (changes > 0 && !(await this.#settle(writer, previous)))
      throw new KeysError(
        'STORE_REPLACED',
        `The key store ${this.#path} was replaced while it was changed: the change may be lost. ` +
          'Check, and make it again.',
      );
    return result;
  }

  /**
   * True if the path still leads to this file, and nothing was copied over it. Costs one `stat` while nothing changes.
   */
  isCurrent(): boolean {
    const stat = statSync(this.#path, { throwIfNoEntry: false });
    if (!stat || !isSameFile(stat, this.#main.identity)) return false;
    if (stat.mtimeMs === this.#compared.modifiedMs && stat.size === this.#compared.bytes) return true;
    if (!this.#hasSideFiles() || !this.#known.isHeld()) return false;
    this.#compared = { modifiedMs: stat.mtimeMs, bytes: stat.size };
    return true;
  }

  /**
   * True if the file has all of its pages. For a truncated file, SQLite could still read cached pages, and recent ones
   * from the -wal file.
   */
  isWhole(): boolean {
    return this.#main.isWhole() || !backfill(this.#driver) || this.#main.isWhole();
  }

  /** Like `isCurrent`, without relying on earlier checks. */
  isSurelyCurrent(): boolean {
    this.#compared = { modifiedMs: 0, bytes: 0 };
    return this.isCurrent();
  }

  /** @returns the previous mark, unless the change continues under it */
  async #mark(transaction: Kysely<Tables>): Promise<string | undefined> {
    if (!this.isSurelyCurrent()) throw new FileReplaced();
    const { id } = this.#known.see();
    // Until the file has the previous mark, the -wal file continues from an older one.
    if (!this.#known.isInFile()) return undefined;
    await sql`update last_change set ids = ${randomUUID() + id}`.execute(transaction);
    return id;
  }

  /** Writes committed changes into the file itself. @returns true if they are known to be in the file at the path */
  async #settle(writer: Kysely<Tables>, previous: string | undefined): Promise<boolean> {
    try {
      if (!this.isSurelyCurrent()) return false;
      let isWritten = false;
      try {
        // No reader in this process needs the state before the change, so all of it can be written.
        isWritten = await checkpoint(writer);
      } catch {
        // The thread may have ended. On a full disk, the change is only in the -wal file.
        backfill(this.#driver);
      }
      // Another program may have written it into the file that was at the path when it opened it.
      if (isWritten && previous !== undefined && this.#known.idInFile() === previous) return false;
      return this.isSurelyCurrent();
    } catch {
      return false; // It was committed and must not be repeated.
    }
  }

  /**
   * Closes a file that is no longer at the path, with its side files.
   * @returns false while another program reads data that is only in the -wal file: then it stays open
   * @throws FileReplaced in the middle of a change; an error that `isLocked`, while another program writes there
   */
  leave(): boolean {
    if (this.#isBusy) throw new FileReplaced();
    const stat = statSync(this.#path, { throwIfNoEntry: false });
    const isMoved = !stat || !isSameFile(stat, this.#main.identity);
    // Others would write into a new -wal file, and this connection would read the old one.
    if (!isMoved && areShared(this.#sideFiles, this.#file)) return this.abandon();
    if (!isMoved && this.#removeIfOverwritten()) return this.abandon();
    if (!backfill(this.#driver)) return false;
    // Others may be using these beside the unmoved file by now, and they belong together.
    if (!isMoved) return this.abandon();
    // After closing, files of others could get the inode numbers that identify these.
    removeSideFiles(this.#sideFiles);
    this.close();
    return true;
  }

  /**
   * Removes the side files of an overwritten file: the contents of the -wal file must not be written into it.
   * @throws an error that `isLocked`, while another program writes there, perhaps into the new contents
   */
  #removeIfOverwritten(): boolean {
    try {
      this.#driver.exec('begin immediate');
    } catch (error) {
      if (isLocked(error)) throw error; // Otherwise, no one can write there.
    }
    try {
      if (this.#known.isHeld()) return false;
      emptyWal(this.#sideFiles);
      removeSideFiles(this.#sideFiles);
      return true;
    } finally {
      if (this.#driver.inTransaction) this.#driver.exec('rollback');
    }
  }

  /** Closes a file that others keep using. Returns false in the middle of a change. */
  abandon(): boolean {
    if (this.#isBusy) return false;
    besideOthers(this.#file, () => this.#disconnect());
    this.#main.close();
    return true;
  }

  get #isBusy(): boolean {
    return this.#driver.inTransaction || (this.#thread?.isBusy ?? false);
  }

  /** Closes the connections. Kysely would leave an unused one open. */
  close(): void {
    this.#disconnect();
    this.#main.close();
  }

  #disconnect(): void {
    this.#thread?.close();
    this.#driver.close();
  }

  #hasSideFiles(): boolean {
    return [...this.#sideFiles].every(([path, identity]) =>
      isSameFile(statSync(path, { throwIfNoEntry: false }), identity),
    );
  }
}

/** How often a change tries to write itself into the file, and the pause in between. */
const [MAX_TRIES, WAIT_MS] = [100, 2];

/** SQLite's report of a checkpoint: the pages in its log, and how many of them are in the file now. */
interface Checkpoint {
  busy: number;
  log: number;
  checkpointed: number;
}

/**
 * Writes committed changes into the file itself, as far as no one reads the state before. Another program's checkpoint
 * may have started before the last change.
 * @returns true if SQLite has written all of it
 */
async function checkpoint(db: Kysely<Tables>): Promise<boolean> {
  const began = performance.now();
  let result: Checkpoint | undefined;
  let tries = 0;
  while (tries < MAX_TRIES) {
    [result] = (await sql<Checkpoint>`pragma wal_checkpoint(passive)`.execute(db)).rows;
    tries += 1;
    if (result?.busy !== 1) break;
    await delay(WAIT_MS);
  }
  debug('a checkpoint was made', () => ({ ...result, tries, durationMs: millisecondsSince(began) }));
  return result?.busy === 0 && result.log === result.checkpointed;
}

/** Writes committed changes into the file. Returns true if all of them were written. */
function backfill(driver: Database.Database): boolean {
  try {
    const [result] = driver.pragma('wal_checkpoint(passive)') as Checkpoint[];
    debug('a checkpoint was made', () => ({ ...result }));
    return result?.log === result?.checkpointed;
  } catch (error) {
    return !isLocked(error); // What cannot be written now cannot be written later either.
  }
}
