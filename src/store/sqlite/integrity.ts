import { type Kysely, sql } from 'kysely';
import { isKeysError } from '../../keys/errors.ts';
import type { Connection } from '../connection.ts';
import { driverCodeOf } from '../errors.ts';
import type { Tables } from '../tables.ts';
import { withNewSchema } from './sqlite-schema.ts';

/**
 * What is wrong with an SQLite file as a whole; undefined for a sound one. It takes seconds for a million keys.
 * @param runsExpressions false for a file in which others have written expressions that its pages are checked by
 */
export async function findDamage(
  file: Pick<Connection, 'run'>,
  { runsExpressions = true } = {},
): Promise<string | undefined> {
  try {
    if (!runsExpressions) return await file.run(findDamagedSchema);
    const { rows } = await file.run((db) => sql<{ integrity_check: string }>`pragma integrity_check(1)`.execute(db));
    const result = rows[0]?.integrity_check ?? 'it could not be checked';
    return result === 'ok' ? await file.run(findDamagedSchema) : result;
  } catch (error) {
    // A definition that means nothing is found when it is used: before the pages of the table are looked at.
    const cause = isKeysError(error) ? error.cause : error;
    if (driverCodeOf(cause) === 'SQLITE_ERROR') return (cause as Error).message;
    throw error;
  }
}

/**
 * What is missing in the definitions of the tables: a changed letter renames a column, and the file is sound.
 * @throws an error of SQLite where a statement does not compile
 */
async function findDamagedSchema(db: Kysely<Tables>): Promise<string | undefined> {
  const { rows } = await sql<{ user_version: number }>`pragma user_version`.execute(db);
  const present = new Map((await columnsIn(db)).map(({ table, columns }) => [table, columns]));
  for (const { table, columns } of await withNewSchema(rows[0]!.user_version, columnsIn)) {
    const missing = columns.find((column) => !present.get(table)?.includes(column));
    if (missing !== undefined) return `the table ${table} has no column ${missing}`;
    const sets = columns.map((column) => sql`${sql.id(column)} = ${sql.id(column)}`);
    // Compiles the triggers as well, and runs nothing.
    await sql`explain insert into ${sql.table(table)} default values`.execute(db);
    await sql`explain update ${sql.table(table)} set ${sql.join(sets)}`.execute(db);
    await sql`explain delete from ${sql.table(table)}`.execute(db);
  }
  return undefined;
}

interface TableColumns {
  table: string;
  columns: string[];
}

/** Of tables that can be written: those in which SQLite keeps the index of searches are its own. */
async function columnsIn(db: Kysely<Tables>): Promise<TableColumns[]> {
  const { rows } = await sql<{ table: string; columns: string }>`
    select listed.name as "table", json_group_array(found.name) as columns
    from sqlite_schema as listed, pragma_table_info(listed.name) as found
    where listed.type = 'table' and listed.sql not like 'create virtual%'
      and listed.name not like 'sqlite\\_%' escape '\\' and listed.name not like 'api\\_keys\\_search\\_%' escape '\\'
    group by listed.name`.execute(db);
  return rows.map(({ table, columns }) => ({ table, columns: JSON.parse(columns) as string[] }));
}
