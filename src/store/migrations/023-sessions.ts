import type { Kysely } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/** The sessions of people who have signed in with a key. */
export async function createSessions(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  await db.schema
    .createTable('sessions')
    .addColumn('token_digest', text, (column) => column.primaryKey())
    .addColumn('secret_digest', text, (column) => column.notNull())
    .addColumn('key_id', text, (column) => column.notNull())
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('used_at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema.createIndex('sessions_by_key').on('sessions').columns(['key_id', 'used_at']).execute();
  await db.schema.createIndex('sessions_by_use').on('sessions').column('used_at').execute();
}
