import { type Kysely, sql } from 'kysely';
import type { ColumnTypes, Tables, TablesOfFeature } from '../../store/index.ts';

/** The one row of `notice_state`: the progress of collecting notices, and the process that does it. */
export interface NoticeStateTable {
  one: 1;
  /** The last processed entry of the audit log. */
  log_number: number;
  /** When notices were last collected, in milliseconds since 1970, like the next three times. */
  seen_at: number;
  /** See `EndingsPosition`, as JSON. */
  endings: string;
  /** See `NoticedRefusals`, as JSON. */
  refusals: string;
  /** Identifies the webhook that refuses further notices. */
  gone: string | null;
  /** The process that collects and delivers, by a random id. */
  holder: string | null;
  leased_until: number;
  failed_at: number | null;
  /** Why the last failed attempt failed. */
  failure: string | null;
  delivered_at: number | null;
}

/** A row of `notice_outbox`: a notice waiting for delivery. Times are milliseconds since 1970. */
export interface NoticeOutboxTable {
  id: string;
  type: string;
  created_at: number;
  /** The body to send, as JSON. */
  body: string;
  attempts: number;
  next_at: number;
}

declare module '../../store/tables.ts' {
  interface Tables {
    notice_state: NoticeStateTable;
    notice_outbox: NoticeOutboxTable;
  }
}

/** The progress of collecting notices, and those that are not delivered yet. */
export const noticeTables = {
  tables: { notice_state: ['one'], notice_outbox: ['id'] },
  writtenByServers: ['notice_state', 'notice_outbox'],
  migrations: [{ name: 'first release', up: createTables }],
} satisfies TablesOfFeature;

async function createTables(db: Kysely<Tables>, { text }: ColumnTypes): Promise<void> {
  // The state of collecting notices, the process that does it, and the webhook's answers.
  await sql`create table notice_state (
    one integer primary key not null check (one = 1),
    log_number bigint not null,
    seen_at bigint not null,
    endings ${text} not null,
    refusals ${text} not null,
    gone ${text},
    holder ${text},
    leased_until bigint not null,
    failed_at bigint,
    failure ${text},
    delivered_at bigint
  )`.execute(db);
  await sql`create table notice_outbox (
    id ${text} primary key not null,
    type ${text} not null,
    created_at bigint not null,
    body ${text} not null,
    attempts integer not null,
    next_at bigint not null
  )`.execute(db);
  await sql`create index notice_outbox_by_time on notice_outbox (next_at, created_at, id)`.execute(db);
}
