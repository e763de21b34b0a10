import { type Kysely, sql } from 'kysely';
import { BULK_CACHE_KIB } from './insert-rows.ts';
import { MAX_CHANGES } from './key-changes.ts';
import { indexedText } from './schema.ts';
import type { Tables } from './tables.ts';

/** With so many, whoever has not asked since the change before them has to forget all keys. */
const NOTED_CHANGES = MAX_CHANGES + 2;

/** What `withoutTriggers` does once for all keys, these do for each. */
export const REPLACED_TRIGGERS = ['key_changes_before_insert', 'api_keys_search_after_insert'] as const;

/** Does once for all keys of an SQLite store what triggers do for each that is inserted. See `staged_insertion`. */
export async function withoutTriggers(db: Kysely<Tables>, insert: () => Promise<void>): Promise<void> {
  const { rows: caches } = await sql<{ cache_size: number }>`pragma cache_size`.execute(db);
  await sql`pragma cache_size = ${sql.lit(-BULK_CACHE_KIB)}`.execute(db);
  try {
    const { rows } = await sql<{ last: number }>`select coalesce(max(rowid), 0) as last from api_keys`.execute(db);
    const inserted = sql`from api_keys where rowid > ${sql.lit(rows[0]!.last)}`;
    await sql`insert into staged_insertion values ('')`.execute(db);
    await insert();
    await sql`delete from staged_insertion`.execute(db);
    await sql`insert into api_keys_search (rowid, search_text)
      select rowid, ${sql.raw(indexedText('search_text'))} ${inserted}`.execute(db);
    await sql`insert into key_changes (key_id) select id ${inserted}
      order by rowid desc limit ${sql.lit(NOTED_CHANGES)}`.execute(db);
  } finally {
    await sql`pragma cache_size = ${sql.lit(caches[0]!.cache_size)}`.execute(db);
  }
}

/** How much the index may collect before it is told to take it up, in KiB. */
const PENDING_KIB = 1_000_000;

/** Lets the search index of a PostgreSQL store, if it has one, take up all keys at once: in a tenth of the time. */
export async function withPendingList(db: Kysely<Tables>, insert: () => Promise<void>): Promise<void> {
  const { rows } = await sql<{ name: string }>`select indexrelid::regclass::text as name
    from pg_index join pg_class on pg_class.oid = indexrelid join pg_am on pg_am.oid = relam
    where indrelid = 'api_keys'::regclass and amname = 'gin' and pg_has_role(relowner, 'usage')`.execute(db);
  for (const { name } of rows) {
    const settings = sql`fastupdate = on, gin_pending_list_limit = ${sql.lit(PENDING_KIB)}`;
    await sql`alter index ${sql.raw(name)} set (${settings})`.execute(db);
  }
  await insert();
  for (const { name } of rows) {
    await sql`select gin_clean_pending_list(${name}::regclass)`.execute(db);
    await sql`alter index ${sql.raw(name)} reset (gin_pending_list_limit)`.execute(db);
    await sql`alter index ${sql.raw(name)} set (fastupdate = off)`.execute(db);
  }
}
