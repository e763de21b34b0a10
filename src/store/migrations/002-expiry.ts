import type { Kysely } from 'kysely';
import type { Tables } from '../tables.ts';

/** When keys expire, and when they were disabled. */
export async function addExpiry(db: Kysely<Tables>): Promise<void> {
  for (const column of ['expires_at', 'disabled_at'])
    await db.schema.alterTable('api_keys').addColumn(column, 'bigint').execute();
}
