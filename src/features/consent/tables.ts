import { type Kysely, sql } from 'kysely';
import type { ColumnTypes, Tables, TablesOfFeature } from '../../store/index.ts';

/**
 * A row of `consent_requests`. `details` is a JSON text, `source` as `sourceOf` has it; times are milliseconds since
 * 1970.
 */
export interface ConsentRequestTable {
  id: string;
  handle_digest: string;
  code_digest: string | null;
  status: string;
  created_at: number;
  expires_at: number;
  details: string;
  source: string;
}

/** A row of `application_keys`: a key that an application was given. */
export interface ApplicationKeyTable {
  key_id: string;
  client_id: string;
  /** This and the next four are null for one whose secret its application cannot replace: see `Refresh`. */
  refresh_family: string | null;
  refresh_digest: string | null;
  refresh_previous: string | null;
  refresh_salt: string | null;
  refresh_ends_at: number | null;
}

declare module '../../store/tables.ts' {
  interface Tables {
    consent_requests: ConsentRequestTable;
    application_keys: ApplicationKeyTable;
  }
}

/** Requests of applications, and the keys that they were given. */
export const consentTables = {
  tables: { application_keys: ['key_id'] },
  transientTables: ['consent_requests'],
  migrations: [{ name: 'first release', up: createTables }],
} satisfies TablesOfFeature;

async function createTables(db: Kysely<Tables>, { text, keyId }: ColumnTypes): Promise<void> {
  // Keys of applications with their refresh tokens, so that applications can revoke them at any time.
  await sql`create table application_keys (
    key_id ${keyId} primary key not null references api_keys (id) on delete cascade,
    client_id ${text} not null,
    refresh_family ${text} unique,
    refresh_digest ${text},
    refresh_previous ${text},
    refresh_salt ${text},
    refresh_ends_at bigint
  )`.execute(db);

  // Requests of applications. A person decides by one code, and the application gets its key by another. The index has
  // all that each new request asks about the others, which have long details: no network has all the room for them.
  await sql`create table consent_requests (
    id ${text} primary key,
    handle_digest ${text} not null unique,
    code_digest ${text} unique,
    status ${text} not null,
    created_at bigint not null,
    expires_at bigint not null,
    details ${text} not null,
    source ${text} not null default ''
  )`.execute(db);
  await sql`create index consent_requests_by_source
    on consent_requests (source, expires_at, status, created_at, id)`.execute(db);
}
