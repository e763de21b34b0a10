import Database from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import { differencesOf, type SchemaDifference, type SchemaPart } from '../../keys/schema.ts';
import { migrationsBetween } from '../migrations.ts';
import type { Tables } from '../tables.ts';
import { tracedKysely } from '../timed-connection.ts';
import { dialectOf } from './sqlite-driver.ts';

/** What the tables begin with in which SQLite keeps the index of searches, as it likes. */
const SEARCH_TABLES = 'api_keys_search_';

/**
 * In what the schema of a file is not as its version of the schema is made. Other programs may keep tables of their own
 * in it, with indexes, as Litestream does; but nothing that refers to tables of the store, and nothing that acts.
 */
export async function sqliteSchemaDifferences(db: Kysely<Tables>): Promise<SchemaDifference[]> {
  const { rows } = await sql<{ user_version: number }>`pragma user_version`.execute(db);
  const made = await withNewSchema(rows[0]!.user_version, partsIn);
  const own = new Set(made.map(({ table }) => table));
  const found: SchemaPart[] = [];
  for (const part of await partsIn(db)) {
    const isOwn = own.has(part.table) || part.table.startsWith(SEARCH_TABLES);
    if (isOwn || !['table', 'index'].includes(part.type) || (await refersTo(db, part, own))) found.push(part);
  }
  return differencesOf(made, found);
}

/** Runs `work` on an empty store with a version of the schema, in memory. */
export async function withNewSchema<Result>(
  version: number,
  work: (db: Kysely<Tables>) => Promise<Result>,
): Promise<Result> {
  const driver = new Database(':memory:');
  try {
    const db = tracedKysely(dialectOf(driver, () => {}, true));
    for (const migrate of migrationsBetween(0, version)) await migrate(db, 'sqlite');
    return await work(db);
  } finally {
    driver.close();
  }
}

/** What a file defines, as SQLite keeps the statements. None of it is compiled. */
async function partsIn(db: Kysely<Tables>): Promise<(SchemaPart & { table: string })[]> {
  const { rows } = await sql<SchemaPart & { table: string }>`
    select case when type = 'table' and sql like 'create virtual%' then 'virtual table' else type end as type, name,
      sql as definition, tbl_name as "table"
    from sqlite_schema where sql is not null order by rowid`.execute(db);
  return rows.filter(({ type, name }) => type !== 'table' || !name.startsWith(SEARCH_TABLES));
}

/** A foreign key may keep rows of a store from being deleted. */
async function refersTo(db: Kysely<Tables>, { type, name }: SchemaPart, own: ReadonlySet<string>): Promise<boolean> {
  if (type !== 'table') return false;
  const { rows } = await sql<{ table: string }>`pragma foreign_key_list(${sql.id(name)})`.execute(db);
  return rows.some(({ table }) => own.has(table));
}
