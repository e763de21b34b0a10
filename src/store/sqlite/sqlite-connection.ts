import { realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
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
import { retry } from '../retry.ts';
import { isLocked, sqliteError } from './sqlite-errors.ts';
import { requireSecureFile, requireSecureFolder } from './sqlite-access.ts';
import {
  createFolder,
  createStoreFile,
  type FileIdentity,
  identifySideFiles,
  identifyStoreFile,
  isSameFile,
  removeSideFiles,
  type SideFiles,
} from './sqlite-file.ts';
import type { Tables } from '../tables.ts';

/** How long the driver itself waits for a lock: it blocks the event loop meanwhile. */
const DRIVER_WAIT_MS = 25;

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
  /** How long to retry while another process holds the lock, in milliseconds. */
  readonly lockWaitMs: number;
  /** Undefined while there is no file at the path. */
  #file: OpenFile | undefined;
  #opening: Promise<OpenFile> | undefined;
  #checkedThisTurn = false;
  #revision = 0;
  #dataVersion: number | undefined;
  #keyState: string | undefined;

  private constructor(location: string, created: boolean, lockWaitMs: number) {
    this.location = location;
    this.created = created;
    this.lockWaitMs = lockWaitMs;
  }

  /** Opens the store at an absolute path, or creates it unless it must exist. @throws KeysError STORE_… */
  static async open(
    path: string,
    { lockWaitMs, mustExist }: { lockWaitMs: number; mustExist: boolean },
  ): Promise<SqliteConnection> {
    try {
      const created = !mustExist && createStore(path);
      const connection = new SqliteConnection(path, created, lockWaitMs);
      await connection.#database(mustExist);
      return connection;
    } catch (error) {
      throw sqliteError(error, path);
    }
  }

  async run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result> {
    try {
      return await retryWhileLocked(this.lockWaitMs, async () => work(await this.#database()));
    } catch (error) {
      throw sqliteError(error, this.location);
    }
  }

  write<Result>(work: WriteWork<Result>): Promise<Result> {
    // Changes are detected in the file itself.
    return this.run((db) => db.transaction().execute((transaction) => work(transaction, () => {})));
  }

  /** The database at the path now. A file of 0 bytes becomes a store, unless the store must exist. */
  async #database(mustExist = false): Promise<Kysely<Tables>> {
    this.#checkFile();
    if (!this.#file) {
      this.#opening ??= openFile(this.location, {
        lockWaitMs: this.lockWaitMs,
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

  /** Checks, once per turn of the event loop, whether another file is at the path and whether keys were changed. */
  #checkFile(): void {
    if (this.#checkedThisTurn) return;
    this.#closeMovedFile();
    const version = this.#file?.dataVersion();
    if (version !== this.#dataVersion) {
      const state = this.#file?.keyState();
      if (state !== this.#keyState) this.#revision += 1;
      this.#keyState = state;
    }
    this.#dataVersion = version;
    if (!this.#file) return;
    this.#checkedThisTurn = true;
    setImmediate(() => {
      this.#checkedThisTurn = false;
    }).unref();
  }

  /** `data_version` does not count this connection's own writes. */
  #recheckFile(): void {
    this.#dataVersion = undefined;
    this.#checkedThisTurn = false;
  }

  /** There is nothing to hear: the file is looked at. */
  watchHearing(): void {}

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

/** Creates the file of a store. Nothing is left where others could replace it. @returns whether the file is new */
function createStore(path: string): boolean {
  createFolder(dirname(path));
  requireSecureFolder(dirname(path));
  return createStoreFile(path);
}

function retryWhileLocked<Result>(lockWaitMs: number, work: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + lockWaitMs;
  return retry(work, { isRetryable: (error) => isLocked(error) && performance.now() <= deadline });
}

interface OpenFileOptions {
  lockWaitMs: number;
  mustExist: boolean;
  /** Called after each commit. */
  committed: () => void;
}

async function openFile(path: string, { lockWaitMs, mustExist, committed }: OpenFileOptions): Promise<OpenFile> {
  const identity = identifyStoreFile(path);
  requireSecureFile(path);
  // SQLite keeps its files next to the one that a link leads to.
  const file = realpathSync(path);
  const driver = new Database(file, { fileMustExist: true, timeout: DRIVER_WAIT_MS });
  const db = new Kysely<Tables>({ dialect: dialectOf(driver, committed) });
  try {
    await retryWhileLocked(lockWaitMs, async () => {
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
