import { type Kysely, sql, type SqlBool } from 'kysely';
import { asProperties, inNameOf, invalidFeature, snake, words } from '../keys/added/index.ts';
import {
  aFunction,
  anything,
  formatList,
  KeysError,
  list,
  options,
  printable,
  recordOf,
  required,
  text,
} from '../keys/basics/index.ts';
import { insertRows, type Row } from './insert-rows.ts';
import { columnTypes, newestSchema } from './migrations.ts';
import type { AnyPortOfStore, FeatureInStore, StoreOfFeature } from './port-of-store.ts';
import type { DialectName, FeatureMigration, FeatureTables, Tables, TablesOfFeature } from './tables.ts';

/** A store's record of a feature with tables in it, even one that is not installed. */
export interface FeatureRecord extends Required<Pick<TablesOfFeature, 'tables' | 'transientTables'>> {
  readonly feature: string;
  /** The names of its finished migrations. */
  readonly migrations: readonly string[];
}

/** The names of all tables of features. */
export function tableNamesOf(features: readonly Pick<TablesOfFeature, 'tables' | 'transientTables'>[]): string[] {
  return features.flatMap(({ tables = {}, transientTables = [] }) => [...Object.keys(tables), ...transientTables]);
}

const STATE = options<Omit<FeatureRecord, 'feature'>>({
  migrations: required(list(text)),
  tables: required(recordOf(list(text, 1))),
  transientTables: required(list(text)),
});

/** The features with tables in a store. @throws KeysError STORE_CORRUPT */
export async function readRecords(db: Kysely<Tables>): Promise<FeatureRecord[]> {
  const rows = await db.selectFrom('svc_api_features').selectAll().orderBy('name').execute();
  return rows.map(({ name, state }) => ({ feature: name, ...readState(name, state) }));
}

function readState(name: string, state: string): Omit<FeatureRecord, 'feature'> {
  let cause: unknown;
  try {
    const given = JSON.parse(state) as Omit<FeatureRecord, 'feature'>;
    if (STATE(given, 'state') === undefined) return given;
  } catch (error) {
    cause = error;
  }
  throw new KeysError('STORE_CORRUPT', `The key store's record of ${printable(name)} is damaged.`, { cause });
}

/** The features of a store that are not installed. Their tables stay as they are. */
export function goneFrom(records: readonly FeatureRecord[], features: readonly FeatureTables[]): FeatureRecord[] {
  return records.filter(({ feature: name }) => !features.some(({ feature }) => feature === name));
}

/** The features whose tables in a store are missing or outdated. */
export async function pendingFeatures(
  db: Kysely<Tables>,
  features: readonly FeatureTables[],
): Promise<FeatureTables[]> {
  if (features.length === 0) return [];
  const records = new Map((await readRecords(db)).map(({ feature, ...state }) => [feature, JSON.stringify(state)]));
  return features.filter((feature) => {
    const record = records.get(feature.feature);
    return (record !== undefined || feature.migrations?.length) && record !== stateOf(feature);
  });
}

/** The finished migrations of features. */
export type RanMigrations = ReadonlyMap<string, readonly string[]>;

/** The migrations that have run, by the names of their features. */
export function ranOf(records: readonly FeatureRecord[]): RanMigrations {
  return new Map(records.map(({ feature, migrations }) => [feature, migrations]));
}

/** The error for a store that needs a migration where none is allowed. */
export function olderStore(location: string, version: number, pending: readonly FeatureTables[]): KeysError {
  return new KeysError('STORE_UNAVAILABLE', `The key store ${location} ${olderText(version, pending)}.`);
}

/** Why a store has to be migrated. */
export function olderText(version: number, pending: readonly FeatureTables[]): string {
  const names = pending.map(({ feature }) => printable(feature));
  return version < newestSchema()
    ? `was made by an older version of svc-api (schema ${version})`
    : `lacks tables of ${formatList(names)} (schema ${version})`;
}

/** A feature in the form that stores record. */
function stateOf({ migrations = [], tables = {}, transientTables = [] }: FeatureTables, ran = migrations): string {
  return JSON.stringify({ migrations: ran.map(({ name }) => name), tables, transientTables });
}

/**
 * Brings the tables of features up to date, in the transaction that migrates the store.
 * @param ran the migrations of each feature to run. Default: all
 * @throws KeysError FEATURE_INVALID that names the feature, STORE_NEWER
 */
export async function migrateFeatures(
  db: Kysely<Tables>,
  dialect: DialectName,
  features: readonly FeatureTables[],
  ran?: RanMigrations,
): Promise<void> {
  const records = new Map((await readRecords(db)).map((record) => [record.feature, record]));
  for (const { feature, migrations = [] } of features) requireKnown(feature, ran?.get(feature) ?? [], migrations);
  for (const feature of await pendingFeatures(db, features)) {
    const { feature: name, migrations = [] } = feature;
    const done = records.get(name)?.migrations ?? [];
    const last = ran ? (ran.get(name) ?? []) : migrations.map((migration) => migration.name);
    requireKnown(name, done, migrations);
    const wanted = migrations.slice(0, last.length);
    if (wanted.length === 0) continue;
    const before = new Set(await tablesIn(db, dialect));
    const others = await columnsOfOthers(db, dialect, name);
    const run = async (from: number, to: number) => {
      for (const migration of wanted.slice(from, to))
        await inNameOf(name, `Its migration "${printable(migration.name)}" failed`, () =>
          migration.up(db, columnTypes(dialect)),
        );
    };
    const kept = await keptMigrations(db, name);
    if (kept === undefined) await run(done.length, wanted.length);
    else {
      requireKnown(name, kept, wanted);
      await run(done.length, kept.length);
      await inNameOf(name, 'Its rows, which the key store kept, cannot be put back', () =>
        putBack(db, dialect, feature, before),
      );
      await run(Math.max(done.length, kept.length), wanted.length);
    }
    const now = await columnsOfOthers(db, dialect, name);
    const changed = Array.from(others.keys()).filter((table) => now.get(table) !== others.get(table));
    if (changed.length > 0)
      throw invalidFeature(name, `Its migrations change the table ${formatList(changed)}, which is not its own.`);
    // With only some migrations, the tables are those of an earlier version.
    if (wanted.length === migrations.length) await requireTables(db, dialect, feature, before);
    const state = stateOf(feature, wanted);
    await db
      .insertInto('svc_api_features')
      .values({ name, state })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ state }))
      .execute();
  }
}

/** Refuses a store that another version of a feature has migrated. @throws KeysError STORE_NEWER, FEATURE_INVALID */
function requireKnown(name: string, done: readonly string[], wanted: readonly FeatureMigration[]): void {
  const unknown = done.find((each, at) => each !== wanted[at]?.name);
  if (unknown === undefined) return;
  if (done.length > wanted.length)
    throw new KeysError(
      'STORE_NEWER',
      `A newer version of ${printable(name)} has changed the key store, by the migration "${printable(unknown)}". ` +
        `Update ${printable(name)}.`,
    );
  throw invalidFeature(
    name,
    `It no longer has its migration "${printable(unknown)}", which this key store has already run. ` +
      'Keep migrations as they are, and add another one.',
  );
}

/**
 * Types of columns whose values are the same in JSON from both databases. PostgreSQL's `real` has four bytes, SQLite's
 * has eight.
 */
const TYPES = /^(text|uuid|smallint|integer|bigint|double precision)$/i;

const STORE = options<StoreOfFeature>({
  ports: list(
    options<AnyPortOfStore>({
      port: required(anything),
      read: required(aFunction()),
      write: aFunction(),
      forgetBefore: aFunction(),
    }),
  ),
  tables: recordOf(list(text, 1)),
  transientTables: list(text),
  writtenByServers: list(text),
  migrations: list(options<FeatureMigration>({ name: required(words), up: required(aFunction()) })),
});

/** The most characters of a name in PostgreSQL. */
const MAX_IDENTIFIER = 63;

/** The beginning of the names of a plugin's tables. No table of svc-api begins so. */
function tablePrefix(name: string): string {
  return `plugin_${snake(name)}_`;
}

/** Checks the form of what plugins keep in a store. @throws KeysError FEATURE_INVALID, which names the plugin */
export function requireKept(plugins: readonly FeatureInStore[]): void {
  const owners = new Map<string, string>();
  for (const { feature, ...kept } of plugins) {
    const problem = STORE(kept, 'store');
    if (problem !== undefined) throw invalidFeature(feature, asProperties(problem));
    const names = tableNamesOf([kept]);
    const prefix = tablePrefix(feature);
    for (const table of names) {
      if (!table.startsWith(prefix) || !/^[a-z0-9_]+$/.test(table) || table.length > MAX_IDENTIFIER)
        throw invalidFeature(
          feature,
          `Its table "${printable(table)}" has no valid name. Begin the name with "${prefix}", and use at most ` +
            `${MAX_IDENTIFIER} lower-case letters, digits and "_".`,
        );
      const owner = owners.get(table);
      if (owner !== undefined)
        throw invalidFeature(feature, `Its table "${table}" belongs to ${printable(owner)} as well. Rename it.`);
      owners.set(table, feature);
    }
    if (names.length > 0 && !kept.migrations?.length)
      throw invalidFeature(feature, 'It names tables, but has no "migrations" that create them.');
  }
}

/** Requires that migrations create exactly the tables that a feature names. @throws KeysError FEATURE_INVALID */
async function requireTables(
  db: Kysely<Tables>,
  dialect: DialectName,
  feature: FeatureTables,
  before: ReadonlySet<string>,
): Promise<void> {
  const named = tableNamesOf([feature]);
  const after = await tablesIn(db, dialect);
  const missing = named.filter((table) => !after.includes(table));
  if (missing.length > 0)
    throw invalidFeature(feature.feature, `Its migrations do not create the table ${formatList(missing)}.`);
  const unnamed = after.filter((table) => !before.has(table) && !named.includes(table));
  if (unnamed.length > 0)
    throw invalidFeature(
      feature.feature,
      `Its migrations create ${formatList(unnamed)}, which "tables" does not name.`,
    );
  for (const table of named) {
    const problem = await problemOfTable(db, dialect, feature, table);
    if (problem !== undefined) throw invalidFeature(feature.feature, `Its table ${table} ${problem}`);
  }
}

/** Why the rows of a table could not be copied, or would keep keys from being deleted. */
async function problemOfTable(
  db: Kysely<Tables>,
  dialect: DialectName,
  feature: FeatureTables,
  table: string,
): Promise<string | undefined> {
  const columns = await columnsOf(db, dialect, table);
  for (const { name, type, isFilled } of columns) {
    if (!TYPES.test(type))
      return `has a column ${name} of the type ${type}. Use text, integer, bigint or double precision.`;
    if (isFilled) return `has a column ${name} that the database fills. Give it its values yourself.`;
  }
  const named = feature.tables?.[table];
  const key = columns.filter(({ isInKey, isRequired }) => isInKey && isRequired).map(({ name }) => name);
  if (named && JSON.stringify(named.toSorted()) !== JSON.stringify(key.toSorted()))
    return `does not have ${formatList(named)} as its primary key. List the columns of the key in "tables", each "not null".`;
  const own = tableNamesOf([feature]);
  for (const { other, onDelete } of await referencesOf(db, dialect, table)) {
    if (!own.includes(other) && !onDelete)
      return `refers to ${other} without "on delete cascade" or "on delete set null".`;
    const before = Object.keys(feature.tables ?? {});
    if (named && own.includes(other) && !before.slice(0, before.indexOf(table)).includes(other))
      return `refers to ${other}, which is not named before it.`;
  }
  return undefined;
}

/** The tables of a store, of any program. */
async function tablesIn(db: Kysely<Tables>, dialect: DialectName): Promise<string[]> {
  const { rows } = await (
    dialect === 'sqlite'
      ? sql<{ name: string }>`select name from sqlite_schema where type = 'table'`
      : sql<{ name: string }>`select table_name::text as name from information_schema.tables
          where table_schema = current_schema() and table_type = 'BASE TABLE'`
  ).execute(db);
  return rows.map(({ name }) => name);
}

interface Column {
  name: string;
  type: string;
  /** The next three are 0 or 1 in SQLite. */
  isRequired: unknown;
  isInKey: unknown;
  /** True if the database computes or counts its values. */
  isFilled: unknown;
}

async function columnsOf(db: Kysely<Tables>, dialect: DialectName, table: string): Promise<Column[]> {
  const { rows } = await (
    dialect === 'sqlite'
      ? sql<Column>`select name, type, "notnull" as "isRequired", pk > 0 as "isInKey", hidden > 0 as "isFilled"
          from pragma_table_xinfo(${table})`
      : sql<Column>`select attname::text as name, format_type(atttypid, atttypmod) as type, attnotnull as "isRequired",
            exists (select from pg_index where indrelid = attrelid and indisprimary and attnum = any(indkey)) as "isInKey",
            attgenerated <> '' or attidentity <> '' or coalesce(pg_get_expr(adbin, adrelid), '') like 'nextval(%'
              as "isFilled"
          from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
          where attrelid = ${table}::regclass and attnum > 0 and not attisdropped`
  ).execute(db);
  return rows;
}

/** The columns of all tables but those of a plugin, as text. */
async function columnsOfOthers(
  db: Kysely<Tables>,
  dialect: DialectName,
  feature: string,
): Promise<Map<string, string>> {
  const others = new Map<string, string>();
  // Other programs can have tables with capital letters in the same database.
  for (const table of await tablesIn(db, dialect))
    if (!table.startsWith(tablePrefix(feature)) && /^[a-z0-9_]+$/.test(table))
      others.set(table, JSON.stringify(await columnsOf(db, dialect, table)));
  return others;
}

interface Reference {
  own: string;
  /** The table that it refers to, and its column. */
  other: string;
  column: string;
  /** True if the reference goes away with that row; 0 or 1 in SQLite. */
  onDelete: unknown;
}

async function referencesOf(db: Kysely<Tables>, dialect: DialectName, table: string): Promise<Reference[]> {
  const { rows } = await (
    dialect === 'sqlite'
      ? sql<Reference>`select "from" as own, lower("table") as other, on_delete in ('CASCADE', 'SET NULL') as "onDelete",
          coalesce("to", (select name from pragma_table_info("table") where pk = 1)) as "column"
          from pragma_foreign_key_list(${table})`
      : sql<Reference>`select own.attname::text as own, confrelid::regclass::text as other,
            confdeltype in ('c', 'n') as "onDelete", other.attname::text as "column"
          from pg_constraint
            join pg_attribute own on own.attrelid = conrelid and own.attnum = conkey[1]
            join pg_attribute other on other.attrelid = confrelid and other.attnum = confkey[1]
          where conrelid = ${table}::regclass and contype = 'f'`
  ).execute(db);
  return rows;
}

/**
 * Removes rows inserted by migrations from a new store that gets the rows of another one.
 * @param tables each before the tables that refer to it
 */
export async function emptyTables(db: Kysely<Tables>, tables: readonly string[]): Promise<void> {
  for (const table of tables.toReversed()) await db.deleteFrom(table as keyof Tables).execute();
}

/** Sorts tables so that each comes before the tables that refer to it. */
async function inOrder(db: Kysely<Tables>, dialect: DialectName, tables: readonly string[]): Promise<string[]> {
  const [seen, ordered] = [new Set<string>(), [] as string[]];
  const add = async (table: string) => {
    if (seen.has(table) || !tables.includes(table)) return;
    seen.add(table);
    for (const { other } of await referencesOf(db, dialect, table)) await add(other);
    ordered.push(table);
  };
  for (const table of tables) await add(table);
  return ordered;
}

/** How many rows are put back at a time. */
const PAGE_ROWS = 500;

/** The migrations of a feature when its rows were kept; undefined if none are kept. */
async function keptMigrations(db: Kysely<Tables>, feature: string): Promise<readonly string[] | undefined> {
  const row = await db
    .selectFrom('kept_rows')
    .select('migrations')
    .where('feature', '=', feature)
    .limit(1)
    .executeTakeFirst();
  return row && (JSON.parse(row.migrations) as string[]);
}

/**
 * Restores the rows that a copy of the store kept while the feature was not installed.
 * @param before the tables before the feature's migrations ran, when their names may have differed
 */
async function putBack(
  db: Kysely<Tables>,
  dialect: DialectName,
  { feature, transientTables = [] }: FeatureTables,
  before: ReadonlySet<string>,
): Promise<void> {
  const made = (await tablesIn(db, dialect)).filter((table) => !before.has(table) && !transientTables.includes(table));
  const tables = await inOrder(db, dialect, made);
  await emptyTables(db, tables);
  for (const table of tables) {
    await dropOrphans(db, dialect, feature, table);
    const ofTable = db.selectFrom('kept_rows').where('feature', '=', feature).where('table_name', '=', table);
    for (let last = -1; ;) {
      const page = await ofTable
        .select(['number', 'row'])
        .where('number', '>', last)
        .orderBy('number')
        .limit(PAGE_ROWS)
        .execute();
      if (page.length === 0) break;
      const rows = page.map(({ row }) => JSON.parse(row) as Row);
      await insertRows(db, dialect, table, rows);
      last = Number(page.at(-1)!.number);
    }
    await db.deleteFrom('kept_rows').where('feature', '=', feature).where('table_name', '=', table).execute();
  }
}

/** Drops kept rows that refer to deleted rows, such as keys deleted since then. */
async function dropOrphans(db: Kysely<Tables>, dialect: DialectName, feature: string, table: string): Promise<void> {
  for (const { own, other, column } of await referencesOf(db, dialect, table)) {
    const value = dialect === 'sqlite' ? sql`json_extract("row", ${`$."${own}"`})` : sql`"row"::json ->> ${own}`;
    const found = sql`exists (select 1 from ${sql.table(other)} as referred
      where cast(${sql.ref(`referred.${column}`)} as text) = cast(${value} as text))`;
    await db
      .deleteFrom('kept_rows')
      .where('feature', '=', feature)
      .where('table_name', '=', table)
      .where(sql<SqlBool>`${value} is not null and not ${found}`)
      .execute();
  }
}
