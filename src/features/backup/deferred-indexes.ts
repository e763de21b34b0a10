import { type Kysely, sql } from 'kysely';
import type { DialectName, Tables } from '../../store/index.ts';

/** The statements that drop an object and create it again. */
interface Definition {
  drop: string;
  create: string;
}

/**
 * Runs `insert`, which fills the empty tables of a store, without their indexes, and then creates these from all rows
 * at once, which takes a tenth of the time. Primary key indexes stay, as do those of unique columns in SQLite, which
 * cannot be dropped. Nor does SQLite note each new key: it would first journal every page that a statement changes, in
 * case that fails halfway.
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
      or type = 'trigger' and name = 'key_changes_before_insert' order by rowid`.execute(db);
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
