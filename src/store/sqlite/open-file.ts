import { randomUUID } from 'node:crypto';
import { realpathSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import type { FoundRow, MustExist } from '../connection.ts';
import { retry } from '../retry.ts';
import type { Tables } from '../tables.ts';
import { tracedKysely } from '../timed-connection.ts';
import { ChangedKeys } from './changed-keys.ts';
import { backfill, checkpoint } from './checkpoint.ts';
import { KeyRows } from './key-rows.ts';
import { KnownChanges } from './known-changes.ts';
import { MainFile } from './main-file.ts';
import { FileReplaced, requireOwnWal } from './replaced.ts';
import { requireSecureFile } from './sqlite-access.ts';
import { besideOthers, dialectOf, PRAGMAS } from './sqlite-driver.ts';
import { isLocked } from './sqlite-errors.ts';
import { areShared, emptyWal, identifySideFiles, isSameFile, removeSideFiles, type SideFiles } from './sqlite-file.ts';
import { migrateSqlite } from './sqlite-migrate.ts';
import { threadDialectOf } from './thread-driver.ts';
import { WriteThread } from './write-thread.ts';

/** How long to wait for the lock of the file, in milliseconds. */
export interface Waits {
  /** In all. */
  lockWaitMs: number;
  /** Inside the driver, at a time: it blocks the event loop. */
  busyTimeoutMs: number;
}

export interface OpenFileOptions extends Waits {
  mustExist: MustExist;
  /** Called after each commit. */
  committed: () => void;
}

interface Parts {
  driver: Database.Database;
  db: Kysely<Tables>;
  /** Where it writes, if others read meanwhile. */
  thread: WriteThread | undefined;
  writer: Kysely<Tables>;
  main: MainFile;
}

/** An open database file, and how to tell whether it is still the one at its path. */
export class OpenFile {
  readonly db: Kysely<Tables>;
  readonly #path: string;
  /** Where the path leads to. */
  readonly #file: string;
  readonly #driver: Database.Database;
  readonly #thread: WriteThread | undefined;
  readonly #writer: Kysely<Tables>;
  readonly #main: MainFile;
  readonly #sideFiles: SideFiles;
  readonly #dataVersion: Database.Statement<[], number>;
  readonly #changedKeys: ChangedKeys;
  readonly #keyRows: KeyRows;
  readonly #known: KnownChanges;
  /** What `stat` said of the file when it was last compared. */
  #compared = { modifiedMs: 0, bytes: 0 };

  private constructor(path: string, file: string, { driver, db, thread, writer, main }: Parts) {
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
    this.#known = new KnownChanges(driver, main);
    this.#sideFiles = identifySideFiles(file);
  }

  /** Opens the file at a path, and migrates it. @throws KeysError STORE_…; an error of SQLite or the file system */
  static async open(
    path: string,
    { lockWaitMs, busyTimeoutMs, mustExist, committed }: OpenFileOptions,
  ): Promise<OpenFile> {
    const main = new MainFile(path);
    try {
      requireSecureFile(path);
      // SQLite keeps its files next to the one that a link leads to.
      const file = realpathSync(path);
      requireOwnWal(path, file, main);
      // A command has nobody else to give a turn to.
      const thread = busyTimeoutMs === 0 ? new WriteThread(file, PRAGMAS) : undefined;
      const driver = new Database(file, { fileMustExist: true, timeout: busyTimeoutMs });
      const db = tracedKysely(dialectOf(driver, committed, thread !== undefined));
      const writer = thread ? tracedKysely(threadDialectOf(thread, committed)) : db;
      try {
        const deadline = performance.now() + lockWaitMs;
        const isRetryable = (error: unknown) => isLocked(error) && performance.now() <= deadline;
        const work = async () => {
          for (const pragma of PRAGMAS) driver.pragma(pragma);
          await migrateSqlite(db, path, mustExist);
          const openFile = new OpenFile(path, file, { driver, db, thread, writer, main });
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

  /** Until the file itself has the mark of a migration, another file in its place could not be told from it. */
  #settleMigration(): void {
    if (!this.#known.isLastInFile()) backfill(this.#driver);
    this.#known.areHeld();
  }

  /** A number that SQLite changes when another connection has written. */
  dataVersion(): number {
    return this.#dataVersion.get()!;
  }

  /** See `ChangedKeys`. */
  changedKeys(): readonly string[] | 'any' {
    return this.#changedKeys.read();
  }

  /** See `Connection.findByDigest`. */
  findByDigest(digest: string): FoundRow | undefined {
    // Of a command, which has one connection, what another part of it is writing must not be seen.
    return this.#driver.inTransaction ? undefined : this.#keyRows.findByDigest(digest);
  }

  /**
   * For transactions, one at a time, during which others may read by `db`.
   * @throws FileReplaced
   */
  async writer(): Promise<Kysely<Tables>> {
    if ((await this.#thread?.start()) && !this.isSurelyCurrent()) {
      // It has opened another file, and read nothing yet.
      this.#thread?.close();
      throw new FileReplaced();
    }
    return this.#writer;
  }

  /** Whether the file at the path is this one, and nothing was copied over it: one `stat` while nothing changes. */
  isCurrent(): boolean {
    const stat = statSync(this.#path, { throwIfNoEntry: false });
    if (!stat || !isSameFile(stat, this.#main.identity)) return false;
    if (stat.mtimeMs === this.#compared.modifiedMs && stat.size === this.#compared.bytes) return true;
    if (!this.#hasSideFiles() || !this.#known.areHeld()) return false;
    this.#compared = { modifiedMs: stat.mtimeMs, bytes: stat.size };
    return true;
  }

  /** `isCurrent`, where that it was so a moment ago does not count. */
  isSurelyCurrent(): boolean {
    this.#compared = { modifiedMs: 0, bytes: 0 };
    return this.isCurrent();
  }

  /**
   * Marks a change, in its transaction.
   * @throws FileReplaced
   */
  async mark(transaction: Kysely<Tables>): Promise<void> {
    if (!this.isSurelyCurrent()) throw new FileReplaced();
    const { id } = this.#known.see();
    // Until the file has the previous mark, the -wal file goes on from an older one.
    if (this.#known.isLastInFile()) await sql`update last_change set ids = ${randomUUID() + id}`.execute(transaction);
  }

  /**
   * Writes what was committed into the file itself, so that nothing is lost with its -wal file.
   * @returns whether the change is in the file at the path
   */
  async settle(): Promise<boolean> {
    if (!this.isSurelyCurrent()) return false;
    try {
      // Nobody in this process reads what was before the change: it is written as a whole.
      await checkpoint(this.#writer);
    } catch {
      // Its thread may have ended. For want of room, the change is on disk in the -wal file alone.
      backfill(this.#driver);
    }
    return this.isSurelyCurrent();
  }

  /**
   * Closes a file that is no longer the one at the path, with its side files.
   * @returns false while another program reads what is only in the -wal file: then it stays open
   */
  leave(): boolean {
    const stat = statSync(this.#path, { throwIfNoEntry: false });
    const isMoved = !stat || !isSameFile(stat, this.#main.identity);
    // What others write into a new -wal, this connection would read from the old one.
    if (!isMoved && areShared(this.#sideFiles, this.#file)) return this.abandon();
    if (this.#isBusy) return false;
    const isHeld = isMoved || this.#known.areHeld();
    if (isHeld && !backfill(this.#driver)) return false;
    // The file was overwritten: what the -wal file has must not be written into it.
    if (!isHeld) emptyWal(this.#sideFiles);
    // Beside a file that stays as it is, others may be using them by now: one must not go without the other. Once they
    // are closed, files of others may get the numbers by which they are known.
    if (isMoved || !isHeld) removeSideFiles(this.#sideFiles);
    if (!isMoved) return this.abandon();
    this.close();
    return true;
  }

  /** Closes a file beside which others go on. Returns false in the middle of a change. */
  abandon(): boolean {
    if (this.#isBusy) return false;
    besideOthers(this.#file, () => this.#disconnect());
    this.#main.close();
    return true;
  }

  get #isBusy(): boolean {
    return this.#driver.inTransaction || (this.#thread?.isBusy ?? false);
  }

  /** Closes the connections. Kysely would leave one open that was never used. */
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
