import type { Kysely } from 'kysely';
import type { Tables } from '../tables.ts';

/** The order of the list, with all that the status of a key depends on: it is read without the rows, which are long. */
export async function addStatusToOrder(db: Kysely<Tables>): Promise<void> {
  await db.schema
    .createIndex('api_keys_in_order_with_status')
    .on('api_keys')
    .columns(['created_at', 'id', 'created_by', 'expires_at', 'disabled_at'])
    .execute();
  await db.schema.dropIndex('api_keys_in_order').execute();
}
