import type { Kysely } from 'kysely';
import type { Tables } from '../tables.ts';

/** Keys that end by themselves at a time, and keys that are switched off. */
export async function addExpiry(db: Kysely<Tables>): Promise<void> {
  for (const column of ['expires_at', 'disabled_at'])
    await db.schema.alterTable('api_keys').addColumn(column, 'bigint').execute();
}
