import { type Kysely, sql } from 'kysely';
import type { OutcomeCounts } from '../../keys/key/index.ts';
import type { ColumnTypes, Tables, TablesOfFeature } from '../../store/index.ts';

/** A row of `key_usage`. It can outlive its key for a while. Hours are counted since 1970, in UTC. */
export interface KeyUsageTable extends OutcomeCounts {
  key_id: string;
  /** The number of the key in `key_usage_hours` and `key_usage_days`. */
  number: number;
  /** The first hour in which there were requests. */
  first_hour: number;
  /** The last one, whose counts the row has. */
  hour: number;
}

/** A row of `key_usage_hours`: an hour of a key before its last one. */
export interface KeyUsageHourTable extends OutcomeCounts {
  /** Since 1970, in UTC. */
  hour: number;
  key_number: number;
}

/** A row of `key_usage_days`: hours that were summed up. */
export interface KeyUsageDayTable extends OutcomeCounts {
  /** Since 1970, in UTC. */
  day: number;
  key_number: number;
}

/** A row of `used_grants`. */
export interface UsedGrantTable {
  key_id: string;
  permission: string;
  last_used_at: number;
}

declare module '../../store/tables.ts' {
  interface Tables {
    used_grants: UsedGrantTable;
    key_usage: KeyUsageTable;
    key_usage_hours: KeyUsageHourTable;
    key_usage_days: KeyUsageDayTable;
  }
}

/** The grants that keys used, and how their requests ended. */
export const usageTables = {
  tables: {
    used_grants: ['key_id', 'permission'],
    key_usage: ['key_id'],
    key_usage_hours: ['hour', 'key_number'],
    key_usage_days: ['day', 'key_number'],
  },
  writtenByServers: ['used_grants', 'key_usage', 'key_usage_hours', 'key_usage_days'],
  migrations: [{ name: 'first release', up: createTables }],
} satisfies TablesOfFeature;

async function createTables(db: Kysely<Tables>, { dialect, keyId, text }: ColumnTypes): Promise<void> {
  const isPostgres = dialect === 'postgres';
  // Rows in the order of the primary key: writes in that order change few pages. PostgreSQL has no such tables.
  const clustered = sql.raw(isPostgres ? '' : ' without rowid');
  const counts = sql`accepted bigint not null, forbidden bigint not null, limited bigint not null,
    refused bigint not null`;

  // All tables are separate from the keys and without references, so that recording usage and changing keys do not wait
  // for each other.
  await sql`create table used_grants (
    key_id ${keyId} not null,
    permission ${text} not null,
    last_used_at bigint not null,
    constraint used_grants_key primary key (key_id, permission)
  )${clustered}`.execute(db);

  // The outcomes of the requests of keys in their last hour. PostgreSQL can update a row within its page, without
  // touching an index, if there is room.
  await sql`create table key_usage (
    key_id ${keyId} primary key not null,
    number integer not null unique,
    first_hour integer not null,
    hour integer not null,
    ${counts}
  )${isPostgres ? sql.raw(' with (fillfactor = 50)') : clustered}`.execute(db);
  await sql`create index key_usage_refused on key_usage (hour, number)
    where forbidden > 0 or limited > 0 or refused > 0`.execute(db);

  // The outcomes of requests by hours and days in UTC, counted since 1970. There are many rows, so each has a short key
  // number, is written once, and is only ordered by time: new rows are stored together, and so are outdated ones.
  for (const period of ['hour', 'day'])
    await sql`create table ${sql.id(`key_usage_${period}s`)} (
      ${sql.id(period)} integer not null,
      key_number integer not null,
      ${counts},
      constraint ${sql.id(`key_usage_${period}s_in_order`)} primary key (${sql.id(period)}, key_number)
    )${clustered}`.execute(db);
}
