import type { Kysely } from 'kysely';
import type { Tables } from '../tables.ts';

/** Which keys an apply created. */
export async function addManaged(db: Kysely<Tables>): Promise<void> {
  await db.schema
    .alterTable('api_keys')
    .addColumn('managed', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
}
