import type { Connection } from './connection.ts';

/** Sorts after every text that begins with what stands before it. */
const LAST = '\u{10FFFF}';

/**
 * Names of keys that begin with a text, in their order. Of more than `limit` there are the first ones and the last one:
 * together they have in common what all have in common.
 */
export async function keyNamesFrom(connection: Connection, start: string, limit: number): Promise<string[]> {
  return connection.run(async (db) => {
    const names = db
      .selectFrom('api_keys')
      .select('name')
      .where('name', '>=', start)
      .where('name', '<', start + LAST);
    const rows = await names.orderBy('name').limit(limit).execute();
    const last = rows.length < limit ? [] : await names.orderBy('name', 'desc').limit(1).execute();
    return [...new Set([...rows.slice(0, limit), ...last].map(({ name }) => name))];
  });
}
