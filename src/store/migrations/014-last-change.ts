import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';

/**
 * What marks the last change of an SQLite store: its random id and that of the change before, as one text. A file that
 * is copied over the store shows by it. A database server keeps its own files.
 */
export async function createLastChange(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  if (dialect !== 'sqlite') return;
  await sql`create table last_change (ids text not null)`.execute(db);
  await sql`insert into last_change values (${randomUUID() + NO_CHANGE})`.execute(db);
}

/** The id of the change before the first one (RFC 9562, section 5.9). */
const NO_CHANGE = '00000000-0000-0000-0000-000000000000';
