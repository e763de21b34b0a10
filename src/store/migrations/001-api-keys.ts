import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { announceChanges } from './postgres-triggers.ts';
import { textType } from './text.ts';

/** Keys, each with the digest of its secret. A key is deleted with the key that created it. */
export async function createApiKeys(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  await db.schema
    .createTable('api_keys')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('name', text, (column) => column.notNull().unique())
    .addColumn('description', text)
    .addColumn('roles', text, (column) => column.notNull())
    .addColumn('permissions', text, (column) => column.notNull())
    .addColumn('public_id', text, (column) => column.notNull().unique())
    .addColumn('digest', text, (column) => column.notNull().unique())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('created_by', text, (column) => column.references('api_keys.id').onDelete('cascade'))
    .addColumn('search_text', text, (column) => column.notNull().defaultTo(sql`''`))
    .execute();
  await db.schema.createIndex('api_keys_in_order').on('api_keys').columns(['created_at', 'id']).execute();
  await db.schema
    .createIndex('api_keys_by_creator')
    .on('api_keys')
    .columns(['created_by', 'created_at', 'id'])
    .execute();
  if (dialect === 'postgres') await announceChanges(db);
}
