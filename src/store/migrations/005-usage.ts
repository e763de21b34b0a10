import type { Kysely } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/** How much keys are used, and which permissions they use: in tables of their own, so that recording changes no key. */
export async function createUsage(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  await db.schema
    .createTable('key_usage')
    .addColumn('key_id', text, (column) => column.primaryKey().references('api_keys.id').onDelete('cascade'))
    .addColumn('uses', 'bigint', (column) => column.notNull())
    .addColumn('last_used_at', 'bigint')
    .addColumn('previous_last_used_at', 'bigint')
    .execute();
  await db.schema
    .createTable('used_grants')
    .addColumn('key_id', text, (column) => column.notNull().references('api_keys.id').onDelete('cascade'))
    .addColumn('permission', text, (column) => column.notNull())
    .addColumn('last_used_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('used_grants_key', ['key_id', 'permission'])
    .execute();
}
