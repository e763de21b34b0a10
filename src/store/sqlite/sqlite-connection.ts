import { realpathSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  Kysely,
  SqliteAdapter,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { Connection, WriteWork } from '../connection.ts';
import { migrateSqlite } from './sqlite-migrate.ts';
import { Mutex } from '../mutex.ts';
import { retry } from '../retry.ts';
import { isLocked, sqliteError } from './sqlite-errors.ts';
import { requireSecureFile } from './sqlite-access.ts';
import {
  createStoreFile,
  type FileIdentity,
  identifySideFiles,
  identifyStoreFile,
  isSameFile,
  removeSideFiles,
  type SideFiles,
} from './sqlite-file.ts';
import type { Tables } from '../tables.ts';

/** How long a check of the file is trusted within one turn of the event loop, by every process that has it open. */
const MAX_CHECK_AGE_MS = 1;

class ImmediateSqliteDriver extends SqliteDriver {
  readonly #database: Database.Database;
  readonly #committed: () => void;

  constructor(database: Database.Database, committed: () => void) {
    super({ database });
    this.#database = database;
    this.#committed = committed;
  }

  override async commitTransaction(connection: DatabaseConnection): Promise<void> {
    try {
      await super.commitTransaction(connection);
    } finally {
      this.#committed();
    }
  }

  /** Takes the write lock at once: a transaction that reads before it writes could fail to get it later. */
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  /** After some errors, such as a full disk, SQLite has already rolled back: doing it again would hide the error. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#database.inTransaction) await super.rollbackTransaction(connection);
  }
}

/** How long to wait for the lock of the file, in milliseconds. */
interface Waits {
  /** In all. */
  lockWaitMs: number;
  /** Inside the driver, at a time: it blocks the event loop. */
  busyTimeoutMs: number;
}

/** An open database file, and how to tell whether it is still the one at its path. */
interface OpenFile {
  db: Kysely<Tables>;
  driver: Database.Database;
  identity: FileIdentity;
  sideFiles: SideFiles;
  /** A number that SQLite changes when another connection has written. */
  dataVersion: () => number;
  /** A text that changes with every change of a key. */
  keyState: () => string;
}

/** An open SQLite store that follows its path: if another file is moved there, that one is opened instead. */
export class SqliteConnection implements Connection {
  readonly dialect = 'sqlite';
  readonly location: string;
  /** Whether opening it has created the file. */
  readonly created: boolean;
  readonly #waits: Waits;
  /** Undefined while there is no file at the path. */
  #file: OpenFile | undefined;
  #opening: Promise<OpenFile> | undefined;
  /** One writer of this process at a time waits for the lock of the file, so that many do not try all at once. */
  readonly #mutex = new Mutex();
  #checkedThisTurn = false;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #revision = 0;
  #dataVersion: number | undefined;
  #keyState: string | undefined;

  private constructor(location: string, created: boolean, waits: Waits) {
    this.location = location;
    this.created = created;
    this.#waits = waits;
  }

  /** Opens the store at an absolute path, or creates it unless it must exist. @throws KeysError STORE_… */
  static async open(
    path: string,
    { lockWaitMs, busyTimeoutMs, mustExist }: { lockWaitMs: number; busyTimeoutMs: number; mustExist: boolean },
  ): Promise<SqliteConnection> {
    try {
      const created = !mustExist && createStoreFile(path);
      const connection = new SqliteConnection(path, created, { lockWaitMs, busyTimeoutMs });
      await connection.#database(mustExist);
      return connection;
    } catch (error) {
      throw sqliteError(error, path);
    }
  }

  run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result> {
    return this.#runUntil(performance.now() + this.#waits.lockWaitMs, work);
  }

  async write<Result>(work: WriteWork<Result>): Promise<Result> {
    const deadline = performance.now() + this.#waits.lockWaitMs;
    let keysChanged = false;
    const result = await this.#mutex.run(this.#waits.lockWaitMs, () =>
      this.#runUntil(deadline, (db) =>
        db.transaction().execute((transaction) => work(transaction, () => void (keysChanged = true))),
      ),
    );
    if (keysChanged) await outdateChecks();
    return result;
  }

  async #runUntil<Result>(deadline: number, work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result> {
    try {
      return await retryWhileLocked(deadline, async () => work(await this.#database()));
    } catch (error) {
      throw sqliteError(error, this.location);
    }
  }

  /** The database at the path now. A file of 0 bytes becomes a store, unless the store must exist. */
  async #database(mustExist = false): Promise<Kysely<Tables>> {
    this.#checkFile();
    if (!this.#file) {
      this.#opening ??= openFile(this.location, {
        ...this.#waits,
        mustExist,
        committed: () => this.#recheckFile(),
      }).finally(() => (this.#opening = undefined));
      this.#file = await this.#opening;
    }
    return this.#file.db;
  }

  revision(): number | undefined {
    try {
      this.#checkFile();
    } catch {
      return undefined; // The next query reports what is wrong.
    }
    return this.#file && this.#revision;
  }

  /**
   * Checks whether another file is at the path and whether keys were changed: once per turn of the event loop, and
   * again in a turn that lasts, because libuv polls several times in one while more than 1,024 sockets are ready.
   */
  #checkFile(): void {
    const now = performance.now();
    if (this.#checkedThisTurn && now - this.#checkedAt < MAX_CHECK_AGE_MS) return;
    this.#closeMovedFile();
    const version = this.#file?.dataVersion();
    if (version !== this.#dataVersion) {
      const state = this.#file?.keyState();
      if (state !== this.#keyState) this.#revision += 1;
      this.#keyState = state;
    }
    this.#dataVersion = version;
    if (!this.#file) return;
    this.#checkedAt = now;
    if (this.#checkedThisTurn) return;
    this.#checkedThisTurn = true;
    // Not unref'd: then the next poll could block, and what it wakes up for would come before the reset.
    setImmediate(() => {
      this.#checkedThisTurn = false;
    });
  }

  /** `data_version` does not count this connection's own writes. */
  #recheckFile(): void {
    this.#dataVersion = undefined;
    this.#checkedThisTurn = false;
  }

  async close(): Promise<void> {
    this.#closeMovedFile();
    await this.#file?.db.destroy();
  }

  /**
   * Closes a file that is no longer at the path. No transaction can be in progress: each ends in the turn of the event
   * loop in which it began.
   */
  #closeMovedFile(): void {
    const file = this.#file;
    if (!file || isSameFile(statSync(this.location, { throwIfNoEntry: false }), file.identity)) return;
    this.#file = undefined;
    // Changes that are only in the -wal file belong to the file that was moved away.
    try {
      file.driver.pragma('wal_checkpoint(truncate)');
    } finally {
      file.driver.close();
      removeSideFiles(file.sideFiles);
    }
  }
}

/** Waits until no process trusts a check of the file any more that it made before now. */
async function outdateChecks(): Promise<void> {
  const changedAt = performance.now();
  // A timer may fire early, by less than a millisecond.
  while (performance.now() - changedAt <= MAX_CHECK_AGE_MS) await delay(MAX_CHECK_AGE_MS);
}

function retryWhileLocked<Result>(deadline: number, work: () => Promise<Result>): Promise<Result> {
  return retry(work, { isRetryable: (error) => isLocked(error) && performance.now() <= deadline });
}

interface OpenFileOptions extends Waits {
  mustExist: boolean;
  /** Called after each commit. */
  committed: () => void;
}

async function openFile(
  path: string,
  { lockWaitMs, busyTimeoutMs, mustExist, committed }: OpenFileOptions,
): Promise<OpenFile> {
  const identity = identifyStoreFile(path);
  requireSecureFile(path);
  // SQLite keeps its files next to the one that a link leads to.
  const file = realpathSync(path);
  const driver = new Database(file, { fileMustExist: true, timeout: busyTimeoutMs });
  const db = new Kysely<Tables>({ dialect: dialectOf(driver, committed) });
  try {
    await retryWhileLocked(performance.now() + lockWaitMs, async () => {
      // A secret is shown after its transaction, which must be on disk by then.
      driver.pragma('synchronous = full');
      driver.pragma('foreign_keys = on');
      driver.pragma('trusted_schema = off');
      await migrateSqlite(db, path, mustExist);
    });
  } catch (error) {
    driver.close();
    throw error;
  }
  const version = driver.prepare<[], number>('pragma data_version').pluck();
  const state = driver.prepare<[], string>('select state from key_state').pluck();
  return {
    db,
    driver,
    identity,
    sideFiles: identifySideFiles(file),
    dataVersion: () => version.get()!,
    keyState: () => state.get()!,
  };
}

function dialectOf(database: Database.Database, committed: () => void): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new ImmediateSqliteDriver(database, committed),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}
