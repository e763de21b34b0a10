import type { Kysely } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/** What applications ask for. A person decides by one code, and the application gets its key by another. */
export async function createConsentRequests(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  await db.schema
    .createTable('consent_requests')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('handle_digest', text, (column) => column.notNull().unique())
    .addColumn('code_digest', text, (column) => column.unique())
    .addColumn('status', text, (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addColumn('details', text, (column) => column.notNull())
    .execute();
  await db.schema.createIndex('consent_requests_by_end').on('consent_requests').column('expires_at').execute();
}
