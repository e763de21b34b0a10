import { extname } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type Database from 'better-sqlite3';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { yieldToEventLoop } from '../../keys/basics/index.ts';
import { openDatabase, type PreparedStatement, type PrivateDatabase, runStatement } from './database.ts';
import type { WorkerAnswer, WorkerQuestion, WorkerStart } from './write-worker.ts';

/** Settings of each connection to a store. */
export const PRAGMAS = [
  // A secret is shown after its transaction, which must be on disk by then.
  'synchronous = full',
  'foreign_keys = on',
  'trusted_schema = off',
  // Checkpoints happen only after checking that the -wal file belongs to the file.
  'wal_autocheckpoint = 0',
  // The -wal file grows while it is being read, and shrinks to this size when it restarts.
  'journal_size_limit = 4194304',
];

/** How many reading statements are kept prepared. */
const KEPT_STATEMENTS = 64;

/** How long queries run in a row before the event loop gets a turn, in milliseconds. */
const MAX_SLICE_MS = 10;

/** Runs statements on one connection. */
interface Statements {
  readonly inTransaction: boolean;
  run(sql: string, parameters: readonly unknown[]): Promise<{ rows: unknown[]; changes: number }>;
}

/** Statements that run in this thread. */
class OwnStatements implements Statements {
  readonly #database: PrivateDatabase;
  readonly #takesTurns: boolean;
  /**
   * Limited, since native memory of dropped statements waits for garbage collection. The most recently used are at the
   * end.
   */
  readonly #prepared = new Map<string, PreparedStatement>();
  /** When the first query of this turn began. */
  #sliceBegan: number | undefined;

  constructor(database: PrivateDatabase, takesTurns: boolean) {
    this.#database = database;
    this.#takesTurns = takesTurns;
  }

  get inTransaction(): boolean {
    return this.#database.inTransaction;
  }

  /** Gives the event loop a turn between two queries, such as those of a long list. */
  async run(sql: string, parameters: readonly unknown[]): Promise<{ rows: unknown[]; changes: number }> {
    if (this.#takesTurns) this.#beginSlice();
    const result = runStatement(this.#prepare(sql), parameters);
    if (this.#sliceBegan !== undefined && performance.now() - this.#sliceBegan > MAX_SLICE_MS) await yieldToEventLoop();
    return result;
  }

  #prepare(sql: string): PreparedStatement {
    const statement = this.#prepared.get(sql) ?? this.#database.prepare(sql);
    // A pragma can take effect when it is prepared.
    if (!/^(select|with) /.test(sql)) return statement;
    this.#prepared.delete(sql);
    this.#prepared.set(sql, statement);
    if (this.#prepared.size > KEPT_STATEMENTS) this.#prepared.delete(this.#prepared.keys().next().value!);
    return statement;
  }

  #beginSlice(): void {
    if (this.#sliceBegan !== undefined) return;
    this.#sliceBegan = performance.now();
    void setImmediate().then(() => (this.#sliceBegan = undefined));
  }
}

/** Runs one transaction at a time. The opener of the connection closes it. */
class OneConnectionDriver implements Driver {
  readonly #statements: Statements;
  readonly #committed: () => void;

  constructor(statements: Statements, committed: () => void) {
    this.#statements = statements;
    this.#committed = committed;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return {
      executeQuery: async ({ sql, parameters }) => {
        const { rows, changes } = await this.#statements.run(sql, parameters);
        return { rows: rows as never[], numAffectedRows: BigInt(changes) };
      },
      streamQuery: () => {
        throw new Error('Rows are read in pages.');
      },
    };
  }

  /** Takes the write lock at once: a transaction that reads before it writes could fail to get it later. */
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    try {
      await connection.executeQuery(CompiledQuery.raw('commit'));
    } finally {
      this.#committed();
    }
  }

  /** After some errors, such as a full disk, SQLite has already rolled back: repeating it would hide the error. */
  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#statements.inTransaction) await connection.executeQuery(CompiledQuery.raw('rollback'));
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {}
}

/**
 * Kysely's dialect for an open SQLite database.
 * @param committed called after each commit
 * @param takesTurns true to give the event loop turns between queries
 */
export function dialectOf(database: PrivateDatabase, committed: () => void = () => {}, takesTurns = true): Dialect {
  return sqliteDialect(new OwnStatements(database, takesTurns), committed);
}

/** Kysely's dialect for a connection to an SQLite database. `committed` is called after each commit. */
export function sqliteDialect(statements: Statements, committed: () => void): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new OneConnectionDriver(statements, committed),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/**
 * Closes connections to a file, but keeps its side files. SQLite removes these by name with the last connection of all
 * programs, even if they now belong to another file. A read-only connection cannot remove anything, and keeps the
 * others from being the last.
 */
export function besideOthers(path: string, close: () => void): void {
  let reader: Database.Database | undefined;
  try {
    reader = openDatabase(path, { fileMustExist: true, readonly: true, timeout: 0 });
    reader.pragma('user_version');
  } catch {
    // The next opener gets the error.
  }
  close();
  reader?.close();
}

/** Beside this file, both in the sources and in the package. */
const WORKER = new URL(`write-worker${extname(import.meta.url)}`, import.meta.url);
/** How long closing waits for a running statement. */
const MAX_CLOSE_MS = 5000;
/** The idle time after which the thread ends: it takes a fifth of an idle server's memory. */
const IDLE_MS = 10_000;

/** A connection to a database in a thread of its own, where it blocks nothing. It runs one statement at a time. */
export class WriteThread implements Statements {
  readonly #file: string;
  readonly #pragmas: readonly string[];
  readonly #idleMs: number;
  #idle: NodeJS.Timeout | undefined;
  #worker: Worker | undefined;
  #closed = new Int32Array(new SharedArrayBuffer(4));
  #waiting: PromiseWithResolvers<WorkerAnswer> | undefined;
  #inTransaction = false;
  #totalChanges = 0;

  /**
   * @param pragmas settings applied before the first statement
   * @param options.idleMs the idle time after which the thread ends, in milliseconds
   */
  constructor(file: string, pragmas: readonly string[], { idleMs = IDLE_MS } = {}) {
    this.#file = file;
    this.#pragmas = pragmas;
    this.#idleMs = idleMs;
  }

  get inTransaction(): boolean {
    return this.#inTransaction;
  }

  /** The number of changed rows. Only differences within a transaction are meaningful. */
  get totalChanges(): number {
    return this.#totalChanges;
  }

  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /** True while a statement is running, or another may follow in the same transaction. */
  get isBusy(): boolean {
    return this.#inTransaction || this.#waiting !== undefined;
  }

  /**
   * Starts the thread unless it runs, and opens the database there, without reading anything.
   * @returns true if it was started
   */
  async start(): Promise<boolean> {
    clearTimeout(this.#idle);
    if (this.#worker) return false;
    this.#closed = new Int32Array(new SharedArrayBuffer(4));
    const workerData: WorkerStart = { file: this.#file, pragmas: [...this.#pragmas], closed: this.#closed };
    // The program's own Node options, such as --input-type, may not suit a file.
    const worker = new Worker(WORKER, { workerData, execArgv: [] });
    this.#worker = worker;
    let reason: unknown = new Error('The thread that writes has ended.');
    worker.on('error', (error) => (reason = error));
    worker.once('exit', () => worker === this.#worker && this.#end(reason));
    worker.on('message', (answer: WorkerAnswer) => worker === this.#worker && this.#take(answer));
    await this.#answer();
    return true;
  }

  /** Runs one statement. @throws an error with SQLite's code */
  async run(sql: string, parameters: readonly unknown[]): Promise<{ rows: unknown[]; changes: number }> {
    const first = await this.#ask({ sql, parameters });
    const { error, rows, changes } = first;
    if (error) throw Object.assign(new Error(error.message), { code: error.code });
    for (let { hasMore } = first; hasMore;) {
      const next = await this.#ask('next');
      rows.push(...next.rows);
      ({ hasMore } = next);
    }
    return { rows, changes };
  }

  /** Closes the database and ends the thread, which can be started again. Rolls back an open transaction. */
  close(): void {
    if (!this.#worker) return;
    this.#askToClose();
    // Afterwards another file may be at the path, whose side files must not be touched.
    Atomics.wait(this.#closed, 0, 0, MAX_CLOSE_MS);
    this.#end(new Error('The database was closed.'));
  }

  #askToClose(): void {
    this.#worker!.postMessage('close' satisfies WorkerQuestion);
  }

  /**
   * Ends the thread without waiting: other connections keep the side files, and the next change starts another thread.
   */
  #rest(): void {
    this.#askToClose();
    this.#end(undefined);
  }

  async #ask(question: WorkerQuestion): Promise<WorkerAnswer> {
    if (!this.#worker) throw new Error('The thread that writes has ended.');
    this.#worker.postMessage(question);
    return this.#answer();
  }

  /** The thread keeps the process alive only while an answer is awaited. */
  #answer(): Promise<WorkerAnswer> {
    clearTimeout(this.#idle);
    this.#worker!.ref();
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  #take(answer: WorkerAnswer): void {
    this.#worker!.unref();
    this.#inTransaction = answer.inTransaction;
    this.#totalChanges = answer.totalChanges;
    if (!answer.inTransaction) this.#idle = setTimeout(() => this.#rest(), this.#idleMs).unref();
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting!.resolve(answer);
  }

  #end(reason: unknown): void {
    clearTimeout(this.#idle);
    this.#worker!.unref();
    this.#worker = undefined;
    this.#inTransaction = false;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(reason);
  }
}
