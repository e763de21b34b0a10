import { setImmediate } from 'node:timers/promises';
import Database from 'better-sqlite3';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { nextTurn } from '../../keys/turns.ts';

/** What each connection to a store is told. */
export const PRAGMAS = [
  // A secret is shown after its transaction, which must be on disk by then.
  'synchronous = full',
  'foreign_keys = on',
  'trusted_schema = off',
  // Only after it was checked that the -wal file and the file belong together.
  'wal_autocheckpoint = 0',
];

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

/** How long queries follow one another before others get a turn of the event loop, in milliseconds. */
const MAX_TURN_MS = 10;

/** Lets others have a turn between two queries, of a long list, say. */
class TurnTakingDriver extends ImmediateSqliteDriver {
  /** When the first query of this turn began. */
  #turnBegan: number | undefined;

  override async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await super.acquireConnection();
    return {
      executeQuery: async (query) => {
        this.#beginTurn();
        const result = await connection.executeQuery(query);
        if (this.#turnBegan !== undefined && performance.now() - this.#turnBegan > MAX_TURN_MS) await nextTurn();
        return result as QueryResult<never>;
      },
      streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
    };
  }

  #beginTurn(): void {
    if (this.#turnBegan !== undefined) return;
    this.#turnBegan = performance.now();
    void setImmediate().then(() => (this.#turnBegan = undefined));
  }
}

/**
 * Kysely's dialect for an open SQLite database.
 * @param committed is called after each commit
 * @param takesTurns whether others get a turn between two queries
 */
export function dialectOf(database: Database.Database, committed: () => void, takesTurns: boolean): Dialect {
  const Driver = takesTurns ? TurnTakingDriver : ImmediateSqliteDriver;
  return sqliteDialect(() => new Driver(database, committed));
}

/** Kysely's dialect for SQLite, over a driver. */
export function sqliteDialect(createDriver: () => Driver): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver,
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/**
 * Closes connections to a file, and leaves what is beside it by now. SQLite removes that, by its name, with the last
 * connection of all programs: though there may be what only that has, where the connection was opened with other files.
 * One that only reads can remove nothing, and keeps the others from being the last.
 */
export function besideOthers(path: string, close: () => void): void {
  let reader: Database.Database | undefined;
  try {
    reader = new Database(path, { fileMustExist: true, readonly: true, timeout: 0 });
    reader.pragma('user_version');
  } catch {
    // Who opens it next is told what is wrong.
  }
  close();
  reader?.close();
}
