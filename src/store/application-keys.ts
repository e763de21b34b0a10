import type { Kysely } from 'kysely';
import type { Tables } from './tables.ts';

/** The application that a key was given to, as somebody agreed; undefined for any other key. */
export async function clientOf(db: Kysely<Tables>, keyId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('application_keys')
    .select('client_id')
    .where('key_id', '=', keyId)
    .executeTakeFirst();
  return row?.client_id;
}

/** Remembers which application was given a key, until the key is deleted, inside a write transaction. */
export async function rememberClient(db: Kysely<Tables>, keyId: string, clientId: string): Promise<void> {
  await db.insertInto('application_keys').values({ key_id: keyId, client_id: clientId }).execute();
}
