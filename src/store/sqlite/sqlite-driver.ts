import { setImmediate } from 'node:timers/promises';
import type Database from 'better-sqlite3';
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
        if (this.#turnBegan !== undefined && performance.now() - this.#turnBegan > MAX_TURN_MS) await setImmediate();
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
