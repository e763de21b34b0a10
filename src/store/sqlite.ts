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
import { storeError } from './errors.ts';
import { migrateSqlite } from './migrate.ts';
import { retryWhileLocked } from './retry.ts';
import { createStoreFile, type FileIdentity, identifyStoreFile } from './sqlite-file.ts';
import type { Tables } from './tables.ts';

/** How long the driver itself waits for a lock, in milliseconds: it blocks the event loop meanwhile. */
const DRIVER_WAIT = 25;

/** Takes the write lock when a transaction begins: one that reads first and then writes could not get it later. */
class ImmediateSqliteDriver extends SqliteDriver {
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }
}

/** An open SQLite store that follows its path: when another file is moved there, that one is opened instead. */
export class SqliteConnection {
  readonly location: string;
  /** Whether the file was made by this program just now. */
  readonly created: boolean;
  /** How long to try while another process holds the lock, in milliseconds. */
  readonly lockWait: number;
  #db: Kysely<Tables>;
  #identity: FileIdentity;
  #checkedThisTurn = false;

  private constructor(location: string, created: boolean, lockWait: number, opened: { db: Kysely<Tables>; identity: FileIdentity }) {
    this.location = location;
    this.created = created;
    this.lockWait = lockWait;
    this.#db = opened.db;
    this.#identity = opened.identity;
  }

  /** Opens the store at an absolute path, and makes it first where there is none. @throws KeysError STORE_… */
  static async open(path: string, lockWait: number): Promise<SqliteConnection> {
    try {
      const created = createStoreFile(path);
      return new SqliteConnection(path, created, lockWait, await openFile(path, lockWait));
    } catch (error) {
      throw storeError(error, path);
    }
  }

  /** The database to ask. Looks once a turn of the event loop whether the path still leads to the same file. */
  async database(): Promise<Kysely<Tables>> {
    if (!this.#checkedThisTurn) {
      const { dev, ino } = identifyStoreFile(this.location);
      if (dev !== this.#identity.dev || ino !== this.#identity.ino) await this.#reopen();
      this.#checkedThisTurn = true;
      setImmediate(() => {
        this.#checkedThisTurn = false;
      }).unref();
    }
    return this.#db;
  }

  async close(): Promise<void> {
    await this.#db.destroy();
  }

  async #reopen(): Promise<void> {
    const left = this.#db;
    const opened = await openFile(this.location, this.lockWait);
    this.#db = opened.db;
    this.#identity = opened.identity;
    setImmediate(() => void left.destroy());
  }
}

async function openFile(path: string, lockWait: number): Promise<{ db: Kysely<Tables>; identity: FileIdentity }> {
  const identity = identifyStoreFile(path);
  const file = new Database(path, { fileMustExist: true, timeout: DRIVER_WAIT });
  const db = new Kysely<Tables>({ dialect: dialectOf(file) });
  try {
    await retryWhileLocked(lockWait, async () => {
      // A secret is shown after its transaction: the transaction must be on the disk by then.
      file.pragma('synchronous = full');
      file.pragma('foreign_keys = on');
      file.pragma('trusted_schema = off');
      await migrateSqlite(db, path);
    });
  } catch (error) {
    file.close();
    throw error;
  }
  return { db, identity };
}

function dialectOf(database: Database.Database): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new ImmediateSqliteDriver({ database }),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}
