import type { Kysely } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/** The previous secret of a key, which may still work for a while. */
export async function addRotation(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  for (const column of ['previous_digest', 'previous_public_id'])
    await db.schema.alterTable('api_keys').addColumn(column, text).execute();
  for (const column of ['rotated_at', 'rotation_grace', 'previous_ends_at'])
    await db.schema.alterTable('api_keys').addColumn(column, 'bigint').execute();
  await db.schema
    .createIndex('api_keys_by_previous_digest')
    .unique()
    .on('api_keys')
    .column('previous_digest')
    .execute();
}
