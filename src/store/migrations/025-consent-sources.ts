import type { Kysely } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/** Where requests of applications come from, so that no network has all the room that there is for them. */
export async function addConsentSources(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  await db.schema
    .alterTable('consent_requests')
    .addColumn('source', textType(dialect), (column) => column.notNull().defaultTo(''))
    .execute();
  // All that each new request asks about the others, whose details are long.
  await db.schema
    .createIndex('consent_requests_by_source')
    .on('consent_requests')
    .columns(['source', 'expires_at', 'status', 'created_at', 'id'])
    .execute();
  await db.schema.dropIndex('consent_requests_by_end').execute();
}
