import type { Kysely } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/** Which applications were given which keys, so that they can end them, however long after the request for it. */
export async function createApplicationKeys(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  await db.schema
    .createTable('application_keys')
    .addColumn('key_id', text, (column) => column.primaryKey().notNull().references('api_keys.id').onDelete('cascade'))
    .addColumn('client_id', text, (column) => column.notNull())
    .execute();
}
