import type { Kysely } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/** Limits of keys, the networks that they may be used from, and how far each has used up its limits. */
export async function addLimits(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  for (const table of ['api_keys', 'staged_keys'])
    for (const column of ['limits', 'allow_from']) await db.schema.alterTable(table).addColumn(column, text).execute();
  await db.schema
    .createTable('limit_states')
    .addColumn('key_id', text, (column) => column.notNull().references('api_keys.id').onDelete('cascade'))
    .addColumn('unit', text, (column) => column.notNull())
    .addColumn('count', 'bigint', (column) => column.notNull())
    .addColumn('unused_at', 'bigint', (column) => column.notNull())
    .addColumn('leases', text, (column) => column.notNull())
    .addPrimaryKeyConstraint('limit_states_key', ['key_id', 'unit'])
    .execute();
}
