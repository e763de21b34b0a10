import type { Kysely } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/** The digests of secrets that keys had once: none is accepted, but it is still known whose they were. */
export async function createRotatedSecrets(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  await db.schema
    .createTable('rotated_secrets')
    .addColumn('digest', text, (column) => column.primaryKey())
    .addColumn('public_id', text, (column) => column.notNull())
    .addColumn('key_id', text, (column) => column.notNull().references('api_keys.id').onDelete('cascade'))
    .addColumn('rotated_at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema.createIndex('rotated_secrets_by_key').on('rotated_secrets').column('key_id').execute();
}
