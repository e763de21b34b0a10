import { pathToFileURL } from 'node:url';
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type Database from 'better-sqlite3';
import { isKeysError } from '../../keys/basics/index.ts';
import { loadDriver } from './load-driver.ts';

/**
 * Opens an SQLite database.
 * @throws KeysError DRIVER_UNSUPPORTED; an error of SQLite
 */
export function openDatabase(path: string, options?: Database.Options): Database.Database {
  const Driver = loadDriver();
  return new Driver(path, options);
}

/**
 * Opens an SQLite database that no other connection has open, such as a backup or a temporary file. If no driver works,
 * it uses Node's own SQLite, so that stores on PostgreSQL need no driver. It must not open files that others use: two
 * copies of SQLite in one process do not respect one another's locks.
 * @param path of a file that exists, `:memory:`, or an empty text for a file without a name
 * @throws KeysError DRIVER_UNSUPPORTED; an error of SQLite, by the driver's codes
 */
export function openPrivateDatabase(path: string): PrivateDatabase {
  const isFile = path !== '' && path !== ':memory:';
  try {
    requireDriver();
  } catch (error) {
    const database = isKeysError(error) ? openNodeDatabase(path) : undefined;
    if (!database) throw error;
    return database;
  }
  return openDatabase(path, { fileMustExist: isFile });
}

/**
 * Checks that a driver works, before anything is created.
 * @throws KeysError DRIVER_UNSUPPORTED
 */
export function requireDriver(): void {
  loadDriver();
}

/** The used part of the driver, on a database that no other connection has open. */
export interface PrivateDatabase {
  readonly inTransaction: boolean;
  exec(sql: string): unknown;
  pragma(text: string): unknown;
  prepare<Row>(sql: string): PreparedStatement<Row>;
  close(): unknown;
}

/** A statement of a private database. */
export interface PreparedStatement<Row = unknown> {
  /** True if it returns rows. */
  readonly reader: boolean;
  run(...parameters: unknown[]): { changes: number };
  get(...parameters: unknown[]): Row | undefined;
  all(...parameters: unknown[]): Row[];
}

/** SQLite's primary result codes, by number (sqlite.org/rescode.html). */
const CODES = (
  'OK ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL ' +
  'EMPTY SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB'
).split(' ');
/** Extended codes that mean something else to a store than their primary ones. */
const EXTENDED: Record<number, string> = { 522: 'IOERR_SHORT_READ', 778: 'IOERR_WRITE', 4874: 'IOERR_SHMSIZE' };

/** An error with SQLite's code, in the driver's form. */
class NodeSqliteError extends Error {
  readonly code: string;

  constructor(cause: Error & { errcode: number }) {
    super(cause.message, { cause });
    this.code = `SQLITE_${EXTENDED[cause.errcode] ?? CODES[cause.errcode & 0xff] ?? 'ERROR'}`;
  }
}

function translated<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw error instanceof Error && 'errcode' in error ? new NodeSqliteError(error as never) : error;
  }
}

/**
 * A database in Node's own SQLite, with the driver's interface. Node 22 warns that its SQLite is experimental.
 * @returns undefined if this Node was built without SQLite
 */
export function openNodeDatabase(path: string): PrivateDatabase | undefined {
  const node = process.getBuiltinModule('node:sqlite') as typeof import('node:sqlite') | undefined;
  const isFile = path !== '' && path !== ':memory:';
  // Opens by URI, so that a missing file is not created.
  const location = isFile ? Object.assign(pathToFileURL(path), { search: '?mode=rw' }) : path;
  return node && new NodeDatabase(translated(() => new node.DatabaseSync(location, { defensive: true })));
}

class NodeDatabase implements PrivateDatabase {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  exec(sql: string): void {
    translated(() => this.#database.exec(sql));
  }

  pragma(text: string): unknown[] {
    return this.prepare(`pragma ${text}`).all();
  }

  prepare<Row>(sql: string): PreparedStatement<Row> {
    return new NodeStatement<Row>(translated(() => this.#database.prepare(sql)));
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }
}

class NodeStatement<Row> implements PreparedStatement<Row> {
  readonly reader: boolean;
  readonly #statement: StatementSync;

  constructor(statement: StatementSync) {
    this.#statement = statement;
    this.reader = statement.columns().length > 0;
  }

  run(...parameters: unknown[]): { changes: number } {
    return translated(() => this.#statement.run(...listed(parameters))) as { changes: number };
  }

  get(...parameters: unknown[]): Row | undefined {
    return translated(() => this.#statement.get(...listed(parameters))) as Row | undefined;
  }

  all(...parameters: unknown[]): Row[] {
    return translated(() => this.#statement.all(...listed(parameters))) as Row[];
  }
}

/** Flattens parameters, since the driver accepts a list as well. */
function listed(parameters: unknown[]): SQLInputValue[] {
  return parameters.flat() as SQLInputValue[];
}

/**
 * Runs a statement, or one that changes rows once for each of several lists of parameters. A single statement that
 * inserts many rows would first journal every page that it changes, in case it fails halfway.
 * @returns its rows, and how many were changed
 */
export function runStatement(
  statement: PreparedStatement,
  parameters: readonly unknown[],
): { rows: unknown[]; changes: number } {
  if (statement.reader) return { rows: statement.all(parameters), changes: 0 };
  const lists = Array.isArray(parameters[0]) ? parameters : [parameters];
  let changes = 0;
  for (const list of lists) changes += statement.run(list).changes;
  return { rows: [], changes };
}
