import type { CompiledQuery, DatabaseConnection, Dialect, Driver, QueryResult } from 'kysely';
import { sqliteDialect } from './sqlite-driver.ts';
import type { WriteThread } from './write-thread.ts';

/** Runs transactions by a connection in another thread: one at a time. */
class ThreadDriver implements Driver {
  readonly #thread: WriteThread;
  readonly #committed: () => void;
  readonly #connection: DatabaseConnection;

  constructor(thread: WriteThread, committed: () => void) {
    this.#thread = thread;
    this.#committed = committed;
    this.#connection = {
      executeQuery: async <Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> => {
        const { rows, changes } = await thread.run(sql, parameters);
        return { rows: rows as Row[], numAffectedRows: BigInt(changes) };
      },
      streamQuery: () => {
        throw new Error('Another thread sends its rows in pages.');
      },
    };
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection;
  }

  async beginTransaction(): Promise<void> {
    await this.#thread.run('begin immediate', []);
  }

  async commitTransaction(): Promise<void> {
    try {
      await this.#thread.run('commit', []);
    } finally {
      this.#committed();
    }
  }

  async rollbackTransaction(): Promise<void> {
    if (this.#thread.inTransaction) await this.#thread.run('rollback', []);
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    this.#thread.close();
  }
}

/** Kysely's dialect for a connection in another thread. `committed` is called after each commit. */
export function threadDialectOf(thread: WriteThread, committed: () => void): Dialect {
  return sqliteDialect(() => new ThreadDriver(thread, committed));
}
