import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { debug } from '../../keys/basics/index.ts';
import { type Connection, tracedKysely, type WriteWork } from '../connection.ts';
import { newestSchema } from '../migrations.ts';
import type { FeatureTables, Tables } from '../tables.ts';
import { dialectOf } from './sqlite-driver.ts';
import { sqliteError } from './sqlite-errors.ts';
import { migrateSqlite, newSchema } from './sqlite-schema.ts';
import { openPrivateDatabase, type PrivateDatabase } from './database.ts';

/** How much of it is kept in memory, in KiB: it is looked through in the orders of all its indexes. */
const CACHE = 'cache_size = -32768';

/** How to open such a file. */
export interface PrivateFileOptions {
  /** The path that errors name: that of the file may be a passing one. */
  location: string;
  /** Whether it must be a store already; otherwise an empty file becomes one. */
  mustExist: boolean;
  /** The features whose tables it has, or gets. */
  features: readonly FeatureTables[];
}

/** A store that no other program uses: a backup that is being made or looked at. Nobody's secrets are checked in it. */
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
      // Without the -shm file of those that several programs use, which file systems of other machines lack.
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

  /** One that is open already. Whoever opened it closes it. */
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
        // What lies beside the place where it may be put must not be taken for its own: see `requireOwnWal`.
        await sql`update last_change set ids = ${randomUUID()} || substr(ids, 1, 36)`.execute(transaction);
        return result;
      }),
    );
  }

  revision(): undefined {}

  keysChangedSince(): 'any' {
    return 'any';
  }

  watchHearing(): void {}

  /** Closes it: then it is one file. */
  async close(): Promise<void> {
    this.#driver.close();
  }
}
