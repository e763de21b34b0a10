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

/** Inserts rows of a table, each as a list of the values of columns. */
async function insertLists(
  target: Kysely<Tables>,
  dialect: DialectName,
  table: keyof Tables,
  columns: readonly string[],
  lists: readonly (readonly unknown[])[],
): Promise<void> {
  if (dialect === 'postgres') {
    const rows = lists.map((list) => Object.fromEntries(columns.map((column, index) => [column, list[index]])) as Row);
    return insertRows(target, dialect, table, rows);
  }
  const insert = target.insertInto(table).columns(columns as []);
  await target.executeQuery(forEach(insert.expression(placeholders(columns, columns)).compile(), lists));
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

/** The statements that drop an object and create it again. */
interface Definition {
  drop: string;
  create: string;
}

/**
 * Runs `insert`, which fills the empty tables of a store, without their indexes, and then creates these from all rows
 * at once, which takes a tenth of the time. Primary key indexes stay, as do those of unique columns in SQLite, which
 * cannot be dropped. The triggers of keys in SQLite note changes, of which an empty store has none.
 */
export async function withDeferredIndexes(
  db: Kysely<Tables>,
  dialect: DialectName,
  tables: readonly string[],
  insert: () => Promise<void>,
): Promise<void> {
  const definitions = await (dialect === 'sqlite' ? definitionsOnSqlite(db, tables) : indexesOnPostgres(db, tables));
  for (const { drop } of definitions) await sql.raw(drop).execute(db);
  await insert();
  for (const { create } of definitions) await sql.raw(create).execute(db);
}

async function definitionsOnSqlite(db: Kysely<Tables>, tables: readonly string[]): Promise<Definition[]> {
  const { rows } = await sql<{ type: string; name: string; definition: string }>`
    select type, name, sql as definition from sqlite_schema
    where type = 'index' and sql is not null and tbl_name in (${sql.join(tables)})
      or type = 'trigger' and tbl_name = 'api_keys' order by rowid`.execute(db);
  return rows.map(({ type, name, definition }) => ({
    drop: `drop ${type} "${name.replaceAll('"', '""')}"`,
    create: definition,
  }));
}

/** Leaves out indexes that a foreign key needs. Other programs may have tables in the same schema. */
async function indexesOnPostgres(db: Kysely<Tables>, tables: readonly string[]): Promise<Definition[]> {
  const { rows } = await sql<Definition>`
    select case when own.oid is null then 'drop index ' || indexrelid::regclass
        else format('alter table %s drop constraint %I', indrelid::regclass, own.conname) end as drop,
      case when own.oid is null then pg_get_indexdef(indexrelid)
        else format('alter table %s add constraint %I %s', indrelid::regclass, own.conname,
          pg_get_constraintdef(own.oid)) end as create
    from pg_index join pg_class on pg_class.oid = indrelid
      left join pg_constraint own on own.conindid = indexrelid and own.contype <> 'f'
    where relnamespace = current_schema()::regnamespace and relname in (${sql.join(tables)}) and not indisprimary
      and not exists (select from pg_constraint where conindid = indexrelid and contype = 'f')
    order by indexrelid`.execute(db);
  return rows;
}

const COLUMNS = ['label', 'created_at', 'key_id'] as const satisfies readonly (keyof KeyLabelTable)[];

/** The label rows of a key, each as a list of columns. */
export function labelRowsOf(key: ApiKey): unknown[][] {
  return [...labelsOf(key), ...identityLabelsOf(key)].map((label) => [label, key.createdAt, key.id]);
}

/** Inserts the labels of new keys. */
export async function insertLabelRows(
  db: Kysely<Tables>,
  dialect: DialectName,
  all: readonly unknown[][],
): Promise<void> {
  for (const rows of chunksOf(all)) await insertLists(db, dialect, 'key_labels', COLUMNS, rows);
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
  await insertLabelRows(db, dialect, keys.flatMap(labelRowsOf));
}
