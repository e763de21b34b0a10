import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Tables } from '../tables.ts';

/** An index of a table of the store. */
interface Index {
  name: string;
  table: string;
  /** All that an entry has, as SQL. */
  columns: string[];
  /** Which rows it has, of a partial one. */
  condition: string | undefined;
}

/** The indexes of a schema, of tables that can be written. */
export async function indexesIn(db: Kysely<Tables>): Promise<Index[]> {
  const { rows } = await sql<{ name: string; table: string; definition: string | null; columns: string }>`
    select made.name, made.tbl_name as "table", made.sql as definition,
      (select json_group_array(
          case cid when -1 then 'rowid' when -2 then 'expression' else '"' || column.name || '"' end)
        from pragma_index_xinfo(made.name, 'main') as column) as columns
    from main.sqlite_schema as made where made.type = 'index' and substr(made.tbl_name, 1, 7) <> 'sqlite_'
      and substr(made.tbl_name, 1, 16) <> 'api_keys_search_'`.execute(db);
  return rows.map(({ name, table, definition, columns }) => ({
    name,
    table,
    columns: (JSON.parse(columns) as string[]).map((column) =>
      column === 'expression' ? /\((\w+\([^)]*\))\)/.exec(definition!)![1]! : column,
    ),
    condition: /\swhere\s([^]*)$/i.exec(definition ?? '')?.[1],
  }));
}

/**
 * In which of these indexes of a file an entry is missing, or has no row: `integrity_check` looks for the entries of a
 * row in all indexes before it goes on to the next row, for which a large file has to be read all over.
 * @param indexes those that the file has, as they are made
 */
export async function findIndexDamage(db: Kysely<Tables>, indexes: readonly Index[]): Promise<string | undefined> {
  for (const [table, all] of Map.groupBy(indexes, (index) => index.table)) {
    const rows = await countRows(db, table, all);
    for (const [place, index] of all.entries())
      if (await isDamaged(db, index, rows[place]!)) return `the index ${index.name} does not have the rows of ${table}`;
  }
  return undefined;
}

/** How many rows belong into each of the indexes of a table, all read at once. */
async function countRows(db: Kysely<Tables>, table: string, indexes: readonly Index[]): Promise<number[]> {
  const counts = indexes.map((index) => sql`count(*) filter (where ${conditionOf(index)})`);
  const { rows } = await sql<{ counts: string }>`select json_array(${sql.join(counts)}) as counts
    from ${sql.id('main', table)} not indexed`.execute(db);
  return JSON.parse(rows[0]!.counts) as number[];
}

async function isDamaged(db: Kysely<Tables>, index: Index, expected: number): Promise<boolean> {
  const { name, table, columns } = index;
  const isIn = conditionOf(index);
  const entries = sql`${sql.id('main', table)} indexed by ${sql.id(name)}`;
  // Other columns than those of the line have no such names here.
  const same = columns.map((column, place) =>
    sql.raw(`entry.has_${place} is ${column.includes('(') ? column : `line.${column}`}`),
  );
  const lost = sql`exists (select 1 from ${sql.id('main', table)} as line not indexed where ${isIn} and not exists (
    select 1 from (select ${listOf(columns)} from ${entries} where ${isIn}) as entry
    where ${sql.join(same, sql` and `)}))`;
  const { rows } = await sql<{ entries: number; lost: number }>`select
    (select count(*) from ${entries} where ${isIn}) as entries,
    ${expected === 0 ? sql.lit(0) : lost} as lost`.execute(db);
  return rows[0]!.lost === 1 || rows[0]!.entries !== expected;
}

function conditionOf({ condition }: Index): RawBuilder<unknown> {
  return condition === undefined ? sql`true` : sql.raw(`(${condition})`);
}

function listOf(columns: readonly string[]): RawBuilder<unknown> {
  return sql.raw(columns.map((column, place) => `${column} as has_${place}`).join(', '));
}
