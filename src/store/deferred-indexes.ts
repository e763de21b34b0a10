import { type Kysely, sql } from 'kysely';
import { REPLACED_TRIGGERS } from './bulk-insertion.ts';
import type { DialectName } from './connection.ts';
import { TABLE_NAMES, type Tables } from './tables.ts';

/** The statements that drop something, and create it again. */
interface Definition {
  drop: string;
  create: string;
}

/**
 * Runs `insert`, which fills the empty tables of a store, without their indexes, and creates these from all rows at
 * once: that takes a tenth of the time. The indexes of primary keys stay, and in SQLite those of unique columns, which
 * cannot be dropped.
 */
export async function withDeferredIndexes(
  db: Kysely<Tables>,
  dialect: DialectName,
  insert: () => Promise<void>,
): Promise<void> {
  const indexes = await (dialect === 'sqlite' ? indexesAndTriggersOnSqlite(db) : indexesOnPostgres(db));
  for (const { drop } of indexes) await sql.raw(drop).execute(db);
  await insert();
  for (const { create } of indexes) await sql.raw(create).execute(db);
}

async function indexesAndTriggersOnSqlite(db: Kysely<Tables>): Promise<Definition[]> {
  const { rows } = await sql<{ type: string; name: string; definition: string }>`
    select type, name, sql as definition from sqlite_schema where tbl_name in (${sql.join(TABLE_NAMES)})
      and (type = 'index' and sql is not null or type = 'trigger' and name in (${sql.join(REPLACED_TRIGGERS)}))
    order by rowid`.execute(db);
  return rows.map(({ type, name, definition }) => ({
    drop: `drop ${type} "${name.replaceAll('"', '""')}"`,
    create: definition,
  }));
}

/** But for those that a foreign key rests on. Others may have tables in the same schema. */
async function indexesOnPostgres(db: Kysely<Tables>): Promise<Definition[]> {
  const { rows } = await sql<Definition>`
    select case when own.oid is null then 'drop index ' || indexrelid::regclass
        else format('alter table %s drop constraint %I', indrelid::regclass, own.conname) end as drop,
      case when own.oid is null then pg_get_indexdef(indexrelid)
        else format('alter table %s add constraint %I %s', indrelid::regclass, own.conname,
          pg_get_constraintdef(own.oid)) end as create
    from pg_index join pg_class on pg_class.oid = indrelid
      left join pg_constraint own on own.conindid = indexrelid and own.contype <> 'f'
    where relnamespace = current_schema()::regnamespace and relname in (${sql.join(TABLE_NAMES)}) and not indisprimary
      and not exists (select from pg_constraint where conindid = indexrelid and contype = 'f')
    order by indexrelid`.execute(db);
  return rows;
}
