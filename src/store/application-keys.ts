import { type Kysely, sql } from 'kysely';
import { chunksOf } from './chunks.ts';
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

/** The applications of those of the keys that one was given, by the ids of the keys. */
export async function clientsOf(db: Kysely<Tables>, keyIds: readonly string[]): Promise<Map<string, string>> {
  const clients = new Map<string, string>();
  for (const ids of chunksOf(keyIds)) {
    const rows = await db.selectFrom('application_keys').selectAll().where('key_id', 'in', ids).execute();
    for (const row of rows) clients.set(row.key_id, row.client_id);
  }
  return clients;
}

/** Lets used requests that gave one key have given another, which takes its place, inside a write transaction. */
export async function replaceGivenKey(db: Kysely<Tables>, from: string, to: string): Promise<void> {
  const given = (id: string) => `"keyId":${JSON.stringify(id)}`;
  await db
    .updateTable('consent_requests')
    .set({ details: sql`replace(details, ${given(from)}, ${given(to)})` })
    .where('status', '=', 'USED')
    .where('details', 'like', `%${given(from)}%`)
    .execute();
}
