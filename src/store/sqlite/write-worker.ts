import { parentPort, workerData } from 'node:worker_threads';
import type Database from 'better-sqlite3';
import { openDatabase, runStatement } from './database.ts';

/** What the thread that writes is told at its start. */
export interface WorkerStart {
  /** The path of the database. */
  file: string;
  /** What the connection is told before its first statement: these would read the database. */
  pragmas: string[];
  /** One number, which becomes 1 when the database is closed: the other thread may wait for that. */
  closed: Int32Array<SharedArrayBuffer>;
}

/** A statement; `next` asks for more rows of the last one; `close` ends the thread. */
export type WorkerQuestion = { sql: string; parameters: readonly unknown[] } | 'next' | 'close';

export interface WorkerAnswer {
  /** Some of the rows, in their order. */
  rows: unknown[];
  /** Whether there are more. */
  hasMore: boolean;
  /** How many rows a statement has changed; 0 for one that answers rows. */
  changes: number;
  /** Why the statement failed. An error of SQLite would lose its code on the way. */
  error?: { message: string; code: unknown };
  inTransaction: boolean;
  /** How many rows the connection has changed, of which only differences matter. */
  totalChanges: number;
}

/** The other thread reads a message as a whole. */
const MAX_ROWS = 500;

const { file, pragmas, closed } = workerData as WorkerStart;
const database = openDatabase(file, { fileMustExist: true, timeout: 0 });
/** Those of one version of the tables. */
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

/** @returns how many rows were changed */
function run(sql: string, parameters: readonly unknown[]): number {
  for (; pragmas[0] !== undefined; pragmas.shift()) database.pragma(pragmas[0]);
  const { inTransaction } = database;
  const result = runStatement(prepared(sql), parameters);
  // Nobody else changes the tables during a transaction.
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
