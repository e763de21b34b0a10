import type { Kysely } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/**
 * What keys did to others, as long as it is in force. It outlives the keys: so nothing refers to them. Each is found by
 * the key that did it and those above that, by the secret that it was done with, and by the key that it was done to.
 */
export async function createKeyEffects(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  await db.schema
    .createTable('key_effects')
    .addColumn('id', text, (column) => column.primaryKey().notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('kind', text, (column) => column.notNull())
    .addColumn('actor_id', text, (column) => column.notNull())
    .addColumn('by_secret', text)
    .addColumn('key_id', text, (column) => column.notNull())
    .addColumn('secret', text)
    .addColumn('widening', text)
    .execute();
  await db.schema.createIndex('key_effects_by_key').on('key_effects').column('key_id').execute();
  await db.schema.createIndex('key_effects_by_secret').on('key_effects').column('by_secret').execute();
  await db.schema
    .createTable('key_effect_actors')
    .addColumn('effect_id', text, (column) => column.notNull().references('key_effects.id').onDelete('cascade'))
    .addColumn('key_id', text, (column) => column.notNull())
    .addColumn('name', text, (column) => column.notNull())
    .addPrimaryKeyConstraint('key_effect_actors_pkey', ['effect_id', 'key_id'])
    .execute();
  await db.schema.createIndex('key_effect_actors_by_key').on('key_effect_actors').column('key_id').execute();
  await db.schema.createIndex('key_effect_actors_by_name').on('key_effect_actors').column('name').execute();
}
