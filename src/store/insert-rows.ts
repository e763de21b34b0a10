import { type Kysely, sql } from 'kysely';
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
  const references = columns.map((column) => sql.ref(column));
  const json = JSON.stringify(dialect === 'sqlite' ? rows.map((row) => columns.map((column) => row[column])) : rows);
  const values =
    dialect === 'sqlite'
      ? sql`select ${sql.join(columns.map((_, index) => sql.raw(`value ->> ${index}`)))} from json_each(${json})`
      : sql`select ${sql.join(references)} from json_populate_recordset(null::${sql.table(table)}, ${json})`;
  await target
    .insertInto(table)
    .columns(columns as [])
    .expression(values)
    .execute();
}
