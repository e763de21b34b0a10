import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';

/**
 * An index of the trigrams of what keys are searched by, and one of each filter of the audit log, so that a search need
 * not read all of them.
 */
export async function addSearchIndexes(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  for (const column of ['key_id', 'key_name', 'at'] as const)
    await db.schema.dropIndex(`audit_log_by_${column}`).execute();
  for (const column of ['key_id', 'key_name', 'actor_id', 'actor_name', 'action', 'at'] as const)
    await db.schema.createIndex(`audit_log_by_${column}`).on('audit_log').columns([column, 'number']).execute();
  if (dialect === 'postgres') await indexOnPostgres(db);
  else await indexOnSqlite(db);
}

async function indexOnSqlite(db: Kysely<Tables>): Promise<void> {
  await sql`create virtual table api_keys_search
    using fts5(search_text, content='', contentless_delete=1, tokenize='trigram case_sensitive 1')`.execute(db);
  await sql`insert into api_keys_search (rowid, search_text)
    select rowid, ${sql.raw(indexedText('search_text'))} from api_keys`.execute(db);
  // In one part, which the merging of later ones need not touch; and no deletion has to merge parts.
  await sql`insert into api_keys_search (api_keys_search) values ('optimize')`.execute(db);
  await sql`insert into api_keys_search (api_keys_search, rank) values ('deletemerge', 0)`.execute(db);
  // Triggers keep it right whoever changes keys.
  const remove = 'delete from api_keys_search where rowid = old.rowid;';
  const add = `insert into api_keys_search (rowid, search_text) values (new.rowid, ${indexedText('new.search_text')});`;
  const differs = 'new.search_text is not old.search_text or new.rowid is not old.rowid';
  for (const trigger of [
    `api_keys_search_after_insert after insert on api_keys begin ${add} end`,
    `api_keys_search_after_delete after delete on api_keys begin ${remove} end`,
    `api_keys_search_after_update after update on api_keys when ${differs} begin ${remove} ${add} end`,
  ])
    await sql.raw(`create trigger ${trigger}`).execute(db);
}

/** The index ends at a NUL, which only SQL by hand can write: such a text is found by what stands here for it. */
function indexedText(column: string): string {
  return `case when instr(${column}, char(0)) > 0 then char(1, 1, 1) else ${column} end`;
}

async function indexOnPostgres(db: Kysely<Tables>): Promise<void> {
  await createExtension(db);
  const { rows } = await sql<{ schema: string }>`select nspname::text as schema
    from pg_extension join pg_namespace on pg_namespace.oid = extnamespace
    where extname = 'pg_trgm' and has_schema_privilege(nspname, 'usage')`.execute(db);
  const [extension] = rows;
  if (!extension) return;
  // Without fastupdate, no change has to do what others put off.
  await sql`create index api_keys_by_search_text on api_keys
    using gin (search_text ${sql.id(extension.schema)}.gin_trgm_ops) with (fastupdate = off)`.execute(db);
}

/**
 * Whoever may create objects in the database may create this extension, where the server has it. Not in the store's
 * own schema: other stores of the database use it as well.
 */
async function createExtension(db: Kysely<Tables>): Promise<void> {
  await sql`savepoint extension`.execute(db);
  try {
    await sql`create extension if not exists pg_trgm schema public`.execute(db);
  } catch {
    await sql`rollback to savepoint extension`.execute(db);
  }
  await sql`release savepoint extension`.execute(db);
}
