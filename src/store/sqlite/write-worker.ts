import { parentPort, workerData } from 'node:worker_threads';
import type Database from 'better-sqlite3';
import { openDatabase, runStatement } from './database.ts';

/** Data for the start of the writing thread. */
export interface WorkerStart {
  /** The path of the database. */
  file: string;
  /** Settings applied with the first statement, since they read the database. */
  pragmas: string[];
  /** A number that becomes 1 when the database is closed; the other thread can wait for that. */
  closed: Int32Array<SharedArrayBuffer>;
}

/** A statement; `next` requests more rows of the last one; `close` ends the thread. */
export type WorkerQuestion = { sql: string; parameters: readonly unknown[] } | 'next' | 'close';

export interface WorkerAnswer {
  /** Some of the rows, in their order. */
  rows: unknown[];
  /** True if there are more. */
  hasMore: boolean;
  /** How many rows a statement has changed; 0 for one that returns rows. */
  changes: number;
  /** The error of the statement. An error of SQLite itself would lose its code in transfer. */
  error?: { message: string; code: unknown };
  inTransaction: boolean;
  /** How many rows the connection has changed. Only differences are meaningful. */
  totalChanges: number;
}

/** Rows per message, as the other thread reads a message as a whole. */
const MAX_ROWS = 500;

const { file, pragmas, closed } = workerData as WorkerStart;
const database = openDatabase(file, { fileMustExist: true, timeout: 0 });
/** Statements for one version of the tables. */
const statements = new Map<string, Database.Statement>();
let schemaVersion: unknown;
let totalChanges = 0;
let rows: unknown[] = [];

process.once('exit', () => {
  database.close();
  Atomics.store(closed, 0, 1);
  Atomics.notify(closed, 0);
});

parentPort!.on('message', (question: WorkerQuestion) => {
  if (question === 'close') parentPort!.close();
  else parentPort!.postMessage(answer(question));
});
// Only now can a question be answered.
parentPort!.postMessage(page());

function answer(question: Exclude<WorkerQuestion, 'close'>): WorkerAnswer {
  try {
    return page(question === 'next' ? 0 : run(question.sql, question.parameters));
  } catch (error) {
    const { message, code } = error as Error & { code: unknown };
    return { ...page(), error: { message, code } };
  }
}

/** @returns the number of changed rows */
function run(sql: string, parameters: readonly unknown[]): number {
  for (; pragmas[0] !== undefined; pragmas.shift()) database.pragma(pragmas[0]);
  const { inTransaction } = database;
  const result = runStatement(prepared(sql), parameters);
  // Other connections cannot change the tables during a transaction.
  if (!inTransaction && database.inTransaction) forgetOlderStatements();
  totalChanges = prepared('select total_changes()').pluck().get() as number;
  rows = result.rows;
  return result.changes;
}

function prepared(sql: string): Database.Statement {
  const statement = statements.get(sql) ?? database.prepare(sql);
  statements.set(sql, statement);
  return statement;
}

function forgetOlderStatements(): void {
  const version = database.pragma('schema_version', { simple: true });
  if (version !== schemaVersion) statements.clear();
  schemaVersion = version;
}

function page(changes = 0): WorkerAnswer {
  const some = rows.splice(0, MAX_ROWS);
  return { rows: some, hasMore: rows.length > 0, changes, inTransaction: database.inTransaction, totalChanges };
}
