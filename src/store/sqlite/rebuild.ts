import { setImmediate } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import { indexedText } from '../schema.ts';
import { TABLE_NAMES, type Tables } from '../tables.ts';
import { tracedKysely } from '../timed-connection.ts';
import { dialectOf } from './sqlite-driver.ts';
import { sqliteError } from './sqlite-errors.ts';
import { migrateSqlite } from './sqlite-migrate.ts';

/** How a connection is told that others may have made a file, or damaged it. */
export const UNTRUSTED = ['locking_mode = exclusive', 'trusted_schema = off', 'cell_size_check = on'];

/** From which file to take the rows of a store, and where. */
export interface Rebuild {
  from: string;
  /** An empty file. */
  to: string;
  /** The version of the schema of both. */
  version: number;
  /** The path that errors name. */
  location: string;
}

/**
 * Makes a new store of the rows of another one, which nobody else uses: of its schema, nothing comes along, and nothing
 * acts. What was under way in it is left out.
 * @throws KeysError STORE_…
 */
export async function rebuildStore({ from, to, version, location }: Rebuild): Promise<void> {
  const driver = new Database(to, { fileMustExist: true });
  try {
    // As it is: what became of a key that a row refers to, is found where that is used.
    for (const pragma of [...UNTRUSTED, 'foreign_keys = off']) driver.pragma(pragma);
    const db = tracedKysely(dialectOf(driver, () => {}, true));
    await migrateSqlite(db, location, false, version);
    await sql`attach ${from} as backup`.execute(db);
    await db.transaction().execute((transaction) => copyRows(transaction));
  } catch (error) {
    throw sqliteError(error, location);
  } finally {
    driver.close();
  }
}

async function copyRows(db: Kysely<Tables>): Promise<void> {
  const { rows: derived } = await sql<{ type: string; name: string; definition: string }>`
    select type, name, sql as definition from main.sqlite_schema
    where type in ('index', 'trigger') and sql is not null order by rowid`.execute(db);
  for (const { type, name } of derived) await sql`drop ${sql.raw(type)} main.${sql.id(name)}`.execute(db);
  for (const table of TABLE_NAMES) {
    const { rows } = await sql<{ name: string }>`select name from pragma_table_info(${table}, 'main')`.execute(db);
    // A qualified name is that of a column: SQLite takes another one that it does not know for a text.
    const columns = rows.map(({ name }) => sql.ref(`${table}.${name}`));
    if (columns.length > 0)
      await sql`insert into main.${sql.id(table)} (${sql.join(rows.map(({ name }) => sql.id(name)))})
        select ${sql.join(columns)} from backup.${sql.id(table)} not indexed`.execute(db);
    await setImmediate();
  }
  if (derived.some(({ name }) => name === 'api_keys_search_after_insert'))
    await sql`insert into main.api_keys_search (rowid, search_text)
      select rowid, ${sql.raw(indexedText('search_text'))} from main.api_keys`.execute(db);
  for (const { definition } of derived) await sql.raw(definition).execute(db);
}
