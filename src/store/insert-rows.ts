import { type CompiledQuery, type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import type { DialectName } from './connection.ts';
import { type ApiKeyTable, type KeyLabelTable, type Tables } from './tables.ts';
import type { ApiKey } from '../keys/key/index.ts';
import { chunksOf, identityLabelsOf, LABEL_STARTS, labelsOf } from './rows.ts';

/** A row of any table. */
export type Row = Record<string, string | number | null>;

/** Inserts rows of a table. */
export async function insertRows(
  target: Kysely<Tables>,
  dialect: DialectName,
  table: string,
  rows: readonly Row[],
): Promise<void> {
  const columns = Object.keys(rows[0]!);
  // Half of the columns of most keys are empty.
  const used = columns.filter((column) => rows.some((row) => row[column] !== null));
  const insert = target
    .insertInto(table as keyof Tables)
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

/** As one parameter: a statement with a parameter for each value takes as long to prepare as to run. */
function rowsOnPostgres(
  table: string,
  rows: readonly Row[],
  columns: readonly string[],
  used: string[],
): RawBuilder<unknown> {
  const references = sql.join(columns.map((column) => sql.ref(column)));
  // Properties missing in an object are null.
  const json = JSON.stringify(rows, used);
  return sql`select ${references} from json_populate_recordset(null::${sql.table(table)}, ${json})`;
}

/** Inserts the labels of new keys. */
export async function insertLabels(db: Kysely<Tables>, dialect: DialectName, keys: readonly ApiKey[]): Promise<void> {
  const rows = keys.flatMap((key) =>
    [...labelsOf(key), ...identityLabelsOf(key)].map(
      (label) => ({ label, created_at: key.createdAt, key_id: key.id }) satisfies KeyLabelTable,
    ),
  );
  for (const chunk of chunksOf(rows)) await insertRows(db, dialect, 'key_labels', chunk);
}

/** Replaces the labels of keys. Labels of fields that this version does not know are kept, like the values. */
export async function replaceLabels(db: Kysely<Tables>, dialect: DialectName, keys: readonly ApiKey[]): Promise<void> {
  for (const chunk of chunksOf(keys.map(({ id }) => id)))
    await db
      .deleteFrom('key_labels')
      .where('key_id', 'in', chunk)
      // No index serves this condition: without statistics, PostgreSQL could read all labels by one.
      .where((row) => row.or(LABEL_STARTS.map((start) => sql<SqlBool>`substr(label, 1, ${start.length}) = ${start}`)))
      .execute();
  await insertLabels(db, dialect, keys);
}
