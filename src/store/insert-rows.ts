import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { DialectName } from './connection.ts';
import type { Tables } from './tables.ts';

/** A row of any table. */
export type Row = Record<string, string | number | null>;

/** How much of an SQLite file is kept in memory while many rows are inserted all over it, in KiB. */
export const BULK_CACHE_KIB = 256 * 1024;

/** Inserts rows of a table, as one parameter: a statement with one for each value takes as long to make as to run. */
export async function insertRows(
  target: Kysely<Tables>,
  dialect: DialectName,
  table: keyof Tables,
  rows: readonly Row[],
): Promise<void> {
  const columns = Object.keys(rows[0]!);
  // Half of the columns of most keys have no value.
  const used = columns.filter((column) => rows.some((row) => row[column] !== null));
  await target
    .insertInto(table)
    .columns(columns as [])
    .expression(dialect === 'sqlite' ? rowsOnSqlite(rows, columns, used) : rowsOnPostgres(table, rows, columns, used))
    .execute();
}

function rowsOnSqlite(rows: readonly Row[], columns: readonly string[], used: readonly string[]): RawBuilder<unknown> {
  const json = JSON.stringify(rows.map((row) => used.map((column) => row[column])));
  const values = columns.map((column) => {
    const index = used.indexOf(column);
    return sql.raw(index === -1 ? 'null' : `value ->> ${index}`);
  });
  return sql`select ${sql.join(values)} from json_each(${json})`;
}

/** What is missing in an object is null. */
function rowsOnPostgres(
  table: keyof Tables,
  rows: readonly Row[],
  columns: readonly string[],
  used: string[],
): RawBuilder<unknown> {
  const references = sql.join(columns.map((column) => sql.ref(column)));
  const json = JSON.stringify(rows, used);
  return sql`select ${references} from json_populate_recordset(null::${sql.table(table)}, ${json})`;
}
