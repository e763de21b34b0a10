import { type Kysely, sql } from 'kysely';
import { isAdded } from '../../keys/added/index.ts';
import { debug, isKeysError, KeysError } from '../../keys/basics/index.ts';
import { differencesOf, type SchemaDifference, type SchemaPart } from '../../keys/repository/index.ts';
import { type Connection, type MustExist, tracedKysely } from '../connection.ts';
import { driverCodeOf } from '../errors.ts';
import {
  type FeatureRecord,
  goneFrom,
  migrateFeatures,
  olderStore,
  pendingFeatures,
  type RanMigrations,
  ranOf,
  readRecords,
  tableNamesOf,
} from '../features.ts';
import { migrationsBetween, newestSchema, requireKnownSchema } from '../migrations.ts';
import type { FeatureTables, Tables } from '../tables.ts';
import { dialectOf } from './sqlite-driver.ts';
import { openPrivateDatabase, type PrivateDatabase } from './database.ts';

/** Marks an SQLite file as a key store: "svck". */
export const APPLICATION_ID = 0x73_76_63_6b;

/** The target schema of a migration. */
interface SqliteMigration {
  readonly location: string;
  readonly mustExist: MustExist;
  readonly features: readonly FeatureTables[];
  /** Default: the newest one. */
  readonly newest?: number;
  /** The migrations of each feature to run. Default: all. */
  readonly ran?: RanMigrations;
}

/**
 * Brings an SQLite store to the newest schema, in one transaction that holds the write lock: of several programs
 * started at once, one migrates and the others find it done. The file's `user_version` is the version of the schema.
 * @throws KeysError STORE_FOREIGN for an SQLite file that is not a key store, STORE_NEWER for one of a later version,
 * STORE_OLDER for one of an unreleased version, STORE_UNAVAILABLE for an empty file if the store must exist,
 * FEATURE_INVALID for a migration of a feature that fails
 */
export async function migrateSqlite(
  db: Kysely<Tables>,
  { location, mustExist, features, newest = newestSchema(), ran }: SqliteMigration,
): Promise<void> {
  const current = await requireOwnFormat(db, location);
  const pending = current === newest ? await pendingFeatures(db, features) : features;
  if (current === newest && pending.length === 0) return;
  if (current === 0 && mustExist)
    throw new KeysError('STORE_UNAVAILABLE', `The key store ${location} is an empty file. Check the path.`);
  if (mustExist === 'migrated') throw olderStore(location, current, pending);
  // Must be set before the first table is created: see `compactFile`.
  if (current === 0) await sql`pragma auto_vacuum = incremental`.execute(db);
  await sql`pragma journal_mode = wal`.execute(db);
  // A container on a read-only file system has no place for temporary files.
  await sql`pragma temp_store = memory`.execute(db);
  await db.transaction().execute(async (transaction) => {
    const version = await requireOwnFormat(transaction, location);
    for (const migrate of migrationsBetween(version, newest)) await migrate(transaction, 'sqlite');
    await migrateFeatures(transaction, 'sqlite', features, ran);
    await sql`pragma application_id = ${sql.lit(APPLICATION_ID)}`.execute(transaction);
    await sql`pragma user_version = ${sql.lit(newest)}`.execute(transaction);
    debug('the store is migrated', () => ({ store: location, from: version, to: newest }));
  });
  await sql`pragma temp_store = default`.execute(db);
}

interface FileMarks {
  applicationId: number;
  version: number;
  tables: number;
}

/**
 * The version of the schema of a file; 0 for an empty one.
 * @throws KeysError STORE_FOREIGN, STORE_NEWER, STORE_OLDER
 */
export async function requireOwnFormat(db: Kysely<Tables>, location: string): Promise<number> {
  // One statement sees one state of the file, even while another program creates the store.
  const { rows } = await sql<FileMarks>`select application_id as "applicationId", user_version as version,
    (select count(*) from sqlite_schema) as tables from pragma_application_id, pragma_user_version`.execute(db);
  const { applicationId, version, tables } = rows[0]!;
  if (applicationId !== APPLICATION_ID && (applicationId !== 0 || version !== 0 || tables > 0)) {
    throw new KeysError(
      'STORE_FOREIGN',
      `${location} is an SQLite file of another program, not a key store. Check the path.`,
    );
  }
  requireKnownSchema(version, location);
  return version;
}

/**
 * Differences between a file's schema and that of its version. Other programs can keep tables and indexes of their own
 * in it, as Litestream does, but no references to tables of the store, and no triggers.
 */
export async function sqliteSchemaDifferences(
  db: Kysely<Tables>,
  features: readonly FeatureTables[],
): Promise<SchemaDifference[]> {
  const made = await withSchemaOf(db, features, partsIn);
  const own = new Set(made.map(({ table }) => table));
  const gone = new Set(tableNamesOf(goneFrom(await recordsIn(db), features)).filter((table) => !own.has(table)));
  const found: SchemaPart[] = [];
  for (const part of await partsIn(db)) {
    if (
      own.has(part.table) ||
      !['table', 'index'].includes(part.type) ||
      (!gone.has(part.table) && (await refersTo(db, part, own)))
    )
      found.push(part);
  }
  return differencesOf(made, found);
}

/** The features with tables in a file; none if it lacks the table of features. */
async function recordsIn(db: Kysely<Tables>): Promise<FeatureRecord[]> {
  const { rows } = await sql`select 1 from sqlite_schema where type = 'table' and name = 'svc_api_features'`.execute(
    db,
  );
  return rows.length === 0 ? [] : readRecords(db);
}

/** Runs `work` on an empty store in memory with the file's schema version and features. */
async function withSchemaOf<Result>(
  file: Kysely<Tables>,
  features: readonly FeatureTables[],
  work: (db: Kysely<Tables>) => Promise<Result>,
): Promise<Result> {
  const { rows } = await sql<{ user_version: number }>`pragma user_version`.execute(file);
  const { driver, db } = await newSchema(rows[0]!.user_version, features, ranOf(await recordsIn(file)));
  try {
    return await work(db);
  } finally {
    driver.close();
  }
}

/** Tries the migrations of plugins, so that no file is made if one fails. @throws KeysError FEATURE_INVALID */
export async function tryMigrations(features: readonly FeatureTables[]): Promise<void> {
  if (features.some(({ feature: name }) => isAdded({ name })))
    (await newSchema(newestSchema(), features)).driver.close();
}

/** An empty store with a version of the schema, in memory. @param ran the migrations of each feature to run */
export async function newSchema(
  version: number,
  features: readonly FeatureTables[],
  ran?: RanMigrations,
): Promise<{ driver: PrivateDatabase; db: Kysely<Tables> }> {
  const driver = openPrivateDatabase(':memory:');
  const db = tracedKysely(dialectOf(driver));
  for (const migrate of migrationsBetween(0, version)) await migrate(db, 'sqlite');
  await migrateFeatures(db, 'sqlite', features, ran);
  return { driver, db };
}

/** The definitions in a file, as the SQL that SQLite keeps. None of it is compiled. */
async function partsIn(db: Kysely<Tables>): Promise<(SchemaPart & { table: string })[]> {
  const { rows } = await sql<SchemaPart & { table: string }>`
    select case when type = 'table' and sql like 'create virtual%' then 'virtual table' else type end as type, name,
      sql as definition, tbl_name as "table"
    from sqlite_schema where sql is not null order by rowid`.execute(db);
  return rows;
}

/** A foreign key could keep rows of a store from being deleted. */
async function refersTo(db: Kysely<Tables>, { type, name }: SchemaPart, own: ReadonlySet<string>): Promise<boolean> {
  if (type !== 'table') return false;
  const { rows } = await sql<{ table: string }>`pragma foreign_key_list(${sql.id(name)})`.execute(db);
  return rows.some(({ table }) => own.has(table));
}

/**
 * The damage to an SQLite file as a whole; undefined if it is intact. Takes 13 seconds of CPU for 400,000 keys.
 * @param runsExpressions false for a file with foreign expressions, which checking pages would evaluate
 * @param rowsAlone true if only rows are used, copied into a store with indexes of its own
 */
export async function findDamage(
  file: Pick<Connection, 'run' | 'features'>,
  { runsExpressions = true, rowsAlone = false } = {},
): Promise<string | undefined> {
  try {
    const { features } = file;
    if (!runsExpressions) return await file.run((db) => findDamagedSchema(db, features));
    const check = sql<Record<string, string>>`pragma ${sql.raw(rowsAlone ? 'quick_check' : 'integrity_check')}(1)`;
    const { rows } = await file.run((db) => check.execute(db));
    const [result = 'it could not be checked'] = Object.values(rows[0] ?? {});
    if (result !== 'ok') return result;
    return await file.run((db) => findDamagedSchema(db, features));
  } catch (error) {
    // A meaningless definition only fails when it is used, before the pages of its table are checked.
    const cause = isKeysError(error) ? error.cause : error;
    if (driverCodeOf(cause) === 'SQLITE_ERROR') return (cause as Error).message;
    throw error;
  }
}

/**
 * Columns missing from the tables' definitions: a single changed letter renames a column in an otherwise intact file.
 * @throws an error of SQLite if a statement does not compile
 */
async function findDamagedSchema(db: Kysely<Tables>, features: readonly FeatureTables[]): Promise<string | undefined> {
  const present = new Map((await columnsIn(db)).map(({ table, columns }) => [table, columns]));
  for (const { table, columns } of await withSchemaOf(db, features, columnsIn)) {
    const missing = columns.find((column) => !present.get(table)?.includes(column));
    if (missing !== undefined) return `the table ${table} has no column ${missing}`;
    const sets = columns.map((column) => sql`${sql.id(column)} = ${sql.id(column)}`);
    // Compiles the triggers as well, without running anything.
    await sql`explain insert into ${sql.id('main', table)} default values`.execute(db);
    await sql`explain update ${sql.id('main', table)} set ${sql.join(sets)}`.execute(db);
    await sql`explain delete from ${sql.id('main', table)}`.execute(db);
  }
  return undefined;
}

interface TableColumns {
  table: string;
  columns: string[];
}

/** The columns of tables, except virtual ones. */
async function columnsIn(db: Kysely<Tables>): Promise<TableColumns[]> {
  const { rows } = await sql<{ table: string; columns: string }>`
    select listed.name as "table", json_group_array(found.name) as columns
    from sqlite_schema as listed, pragma_table_info(listed.name, 'main') as found
    where listed.type = 'table' and listed.sql not like 'create virtual%'
      and listed.name not like 'sqlite\\_%' escape '\\'
    group by listed.name`.execute(db);
  return rows.map(({ table, columns }) => ({ table, columns: JSON.parse(columns) as string[] }));
}
