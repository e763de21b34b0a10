import type { Connection } from '../../../store/index.ts';

/** Sorts after every text with the same prefix. */
const LAST = '\u{10FFFF}';

/**
 * Names of keys with a prefix, in order. If there are more than `limit`, the first and last ones, which together share
 * the prefix that all share.
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
