import { type Kysely, sql } from 'kysely';
import type { ColumnTypes, Tables, TablesOfFeature } from '../../store/index.ts';

/** A row of `sessions`. Times are milliseconds since 1970. */
export interface SessionTable {
  token_digest: string;
  secret_digest: string;
  key_id: string;
  started_at: number;
  used_at: number;
  /** The digest of what shows that the key was entered again, and when; both null if it was not. */
  entry_digest: string | null;
  entered_at: number | null;
}

declare module '../../store/tables.ts' {
  interface Tables {
    sessions: SessionTable;
  }
}

/** The sessions of people who have signed in. */
export const sessionTables = {
  transientTables: ['sessions'],
  migrations: [{ name: 'first release', up: createTables }],
} satisfies TablesOfFeature;

async function createTables(db: Kysely<Tables>, { text, keyId }: ColumnTypes): Promise<void> {
  // The sessions of people who have signed in with a key.
  await sql`create table sessions (
    token_digest ${text} primary key,
    secret_digest ${text} not null,
    key_id ${keyId} not null,
    started_at bigint not null,
    used_at bigint not null,
    entry_digest ${text},
    entered_at bigint
  )`.execute(db);
  await sql`create index sessions_by_key on sessions (key_id, used_at)`.execute(db);
  await sql`create index sessions_by_use on sessions (used_at)`.execute(db);
}
