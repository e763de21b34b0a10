import { type CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely';
import type { DialectName } from './connection.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

/** A row of any table. */
export type Row = Record<string, string | number | null>;

/** How much of an SQLite file is kept in memory while many rows are inserted all over it, in KiB. */
export const BULK_CACHE_KIB = 256 * 1024;

/** Inserts rows of a table. */
export async function insertRows(
  target: Kysely<Tables>,
  dialect: DialectName,
  table: keyof Tables,
  rows: readonly Row[],
): Promise<void> {
  const columns = Object.keys(rows[0]!);
  // Half of the columns of most keys have no value.
  const used = columns.filter((column) => rows.some((row) => row[column] !== null));
  const insert = target
    .insertInto(table)
    .columns(columns as [])
    .expression(dialect === 'sqlite' ? placeholders(columns, used) : rowsOnPostgres(table, rows, columns, used));
  if (dialect === 'postgres') await insert.execute();
  else
    await target.executeQuery(
      forEach(
        insert.compile(),
        rows.map((row) => used.map((column) => row[column]!)),
      ),
    );
}

/** Changes rows of keys by their ids, all in the same columns. */
export async function updateRows(
  target: Kysely<Tables>,
  dialect: DialectName,
  rows: readonly (Partial<ApiKeyTable> & Pick<ApiKeyTable, 'id'>)[],
): Promise<void> {
  const columns = Object.keys(rows[0]!).filter((column) => column !== 'id') as (keyof ApiKeyTable)[];
  const given = (column: string) => (dialect === 'sqlite' ? sql.raw('?') : sql.ref(`given.${column}`));
  const sets = sql.join(columns.map((column) => sql`${sql.ref(column)} = ${given(column)}`));
  if (dialect === 'sqlite') {
    const query = sql`update api_keys set ${sets} where id = ?`.compile(target);
    await target.executeQuery(
      forEach(
        query,
        rows.map((row) => [...columns, 'id' as const].map((column) => row[column])),
      ),
    );
  } else
    await sql`update api_keys set ${sets}
      from json_populate_recordset(null::api_keys, ${JSON.stringify(rows)}) as given
      where api_keys.id = given.id`.execute(target);
}

function placeholders(columns: readonly string[], used: readonly string[]): RawBuilder<unknown> {
  return sql`values (${sql.raw(columns.map((column) => (used.includes(column) ? '?' : 'null')).join(', '))})`;
}

/** A statement that an SQLite store runs once for each list of parameters: see `runStatement`. */
function forEach(query: CompiledQuery, lists: readonly (readonly unknown[])[]): CompiledQuery {
  return { ...query, parameters: lists };
}

/** As one parameter: a statement with one for each value takes as long to make as to run. */
function rowsOnPostgres(
  table: keyof Tables,
  rows: readonly Row[],
  columns: readonly string[],
  used: string[],
): RawBuilder<unknown> {
  const references = sql.join(columns.map((column) => sql.ref(column)));
  // What is missing in an object is null.
  const json = JSON.stringify(rows, used);
  return sql`select ${references} from json_populate_recordset(null::${sql.table(table)}, ${json})`;
}
