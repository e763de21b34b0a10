import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { debug } from '../../keys/basics/index.ts';
import { type Connection, tracedKysely, type WriteWork } from '../connection.ts';
import { newestSchema } from '../migrations.ts';
import type { FeatureTables, Tables } from '../tables.ts';
import { dialectOf } from './sqlite-driver.ts';
import { isSqliteFailure, sqliteError } from './sqlite-errors.ts';
import { migrateSqlite, newSchema } from './sqlite-schema.ts';
import { openPrivateDatabase, type PrivateDatabase } from './database.ts';

/** The cache, in KiB: the file is read in the orders of all its indexes. */
const CACHE = 'cache_size = -32768';

/** Options of a private file. */
export interface PrivateFileOptions {
  /** The path for errors: that of the file itself may be temporary. */
  location: string;
  /** True if it must be a store already; otherwise an empty file becomes one. */
  mustExist: boolean;
  /** The features that have, or get, tables in it. */
  features: readonly FeatureTables[];
}

/** A store that no other program uses: a backup being made or examined. No secrets are authenticated from it. */
export class PrivateFile implements Connection {
  readonly dialect = 'sqlite';
  readonly created = false;
  readonly location: string;
  readonly features: readonly FeatureTables[];
  readonly #driver: PrivateDatabase;
  readonly #db: Kysely<Tables>;

  private constructor(
    driver: PrivateDatabase,
    db: Kysely<Tables>,
    { location, features }: Omit<PrivateFileOptions, 'mustExist'>,
  ) {
    this.#driver = driver;
    this.#db = db;
    this.location = location;
    this.features = features;
  }

  /** Opens a file, and migrates it. @throws KeysError STORE_… */
  static async open(path: string, { location, mustExist, features }: PrivateFileOptions): Promise<PrivateFile> {
    let driver;
    try {
      driver = openPrivateDatabase(path);
      // Avoids the -shm file for sharing between programs, which some network file systems do not support.
      for (const pragma of [
        'locking_mode = exclusive',
        'synchronous = full',
        'foreign_keys = on',
        'trusted_schema = off',
      ])
        driver.pragma(pragma);
      await migrateSqlite(tracedKysely(dialectOf(driver)), { location, mustExist, features });
      return PrivateFile.over(driver, { location, features });
    } catch (error) {
      driver?.close();
      throw sqliteError(error, location);
    }
  }

  /** Wraps an open database. Its opener closes it. */
  static over(driver: PrivateDatabase, options: Omit<PrivateFileOptions, 'mustExist'>): PrivateFile {
    driver.pragma(CACHE);
    debug('a file was opened for this process alone', () => ({ store: options.location }));
    return new PrivateFile(driver, tracedKysely(dialectOf(driver)), options);
  }

  /** An empty store in memory. */
  static async empty(location: string, features: readonly FeatureTables[]): Promise<PrivateFile> {
    const { driver, db } = await newSchema(newestSchema(), features);
    return new PrivateFile(driver, db, { location, features });
  }

  async run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result> {
    try {
      return await work(this.#db);
    } catch (error) {
      throw sqliteError(error, this.location);
    }
  }

  write<Result>(work: WriteWork<Result>): Promise<Result> {
    return this.run((db) =>
      db.transaction().execute(async (transaction) => {
        const result = await work(transaction, () => {});
        // Files beside its later location must not be taken for its own: see `requireOwnWal`.
        await sql`update last_change set ids = ${randomUUID()} || substr(ids, 1, 36)`.execute(transaction);
        return result;
      }),
    );
  }

  isFailure(error: unknown): boolean {
    return isSqliteFailure(error);
  }

  revision(): undefined {}

  keysChangedSince(): 'any' {
    return 'any';
  }

  watchHearing(): void {}

  /** Closes it, which leaves a single file. */
  async close(): Promise<void> {
    this.#driver.close();
  }
}
