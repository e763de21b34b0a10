import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';

const TABLES = {
  key_usage: `key_id text primary key references api_keys (id) on delete cascade,
    uses bigint not null, last_used_at bigint, previous_last_used_at bigint`,
  used_grants: `key_id text not null references api_keys (id) on delete cascade,
    permission text not null, last_used_at bigint not null, primary key (key_id, permission)`,
};

/**
 * Keeps the usage of keys in the order of their ids: what is written in that order then changes few pages, in whatever
 * order the keys were used first. In PostgreSQL, tables have no order.
 */
export async function clusterUsage(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  if (dialect !== 'sqlite') return;
  for (const [table, columns] of Object.entries(TABLES)) {
    await sql.raw(`create table clustered_${table} (${columns}) without rowid`).execute(db);
    await sql.raw(`insert into clustered_${table} select * from ${table} order by key_id`).execute(db);
    await sql.raw(`drop table ${table}`).execute(db);
    await sql.raw(`alter table clustered_${table} rename to ${table}`).execute(db);
  }
}
