import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/**
 * Notices for a webhook that were not delivered yet, and how far the store was looked through for them. Keys are found
 * by when they end.
 */
export async function createNotices(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  await db.schema
    .createTable('notice_state')
    .addColumn('one', 'integer', (column) => column.primaryKey().check(sql`one = 1`))
    .addColumn('log_number', 'bigint', (column) => column.notNull())
    .addColumn('seen_at', 'bigint', (column) => column.notNull())
    .addColumn('endings', text, (column) => column.notNull())
    .addColumn('refusals', text, (column) => column.notNull())
    .addColumn('gone', text)
    .addColumn('holder', text)
    .addColumn('leased_until', 'bigint', (column) => column.notNull())
    .addColumn('failed_at', 'bigint')
    .addColumn('failure', text)
    .addColumn('delivered_at', 'bigint')
    .execute();
  await db.schema
    .createTable('notice_outbox')
    .addColumn('id', text, (column) => column.primaryKey().notNull())
    .addColumn('type', text, (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('body', text, (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('next_at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('notice_outbox_by_time')
    .on('notice_outbox')
    .columns(['next_at', 'created_at', 'id'])
    .execute();
  await db.schema
    .createIndex('api_keys_by_expiry')
    .on('api_keys')
    .columns(['expires_at', 'id'])
    .where(sql.ref('expires_at'), 'is not', null)
    .execute();
}
