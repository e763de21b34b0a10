import type { Kysely } from 'kysely';
import type { EndingKey, EndsQuery } from '../keys/notices/endings.ts';
import type { RefusedKey } from '../keys/notices/refusals.ts';
import { chunksOf } from './chunks.ts';
import type { Connection } from './connection.ts';
import { apiKeyOf } from './rows.ts';
import type { Tables } from './tables.ts';

/** How many rows of the use of keys are read at once: others have their turns in between. */
const PAGE_ROWS = 1000;

/** Keys whose end lies in a span of time, in the order of their ends. */
export async function findEnding(db: Kysely<Tables>, { from, to, after, limit }: EndsQuery): Promise<EndingKey[]> {
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where('expires_at', 'is not', null)
    .where('expires_at', '>', from)
    .where('expires_at', '<=', to)
    .$if(after !== undefined, (query) =>
      query.where((row) =>
        row.or([
          row('expires_at', '>', after!.expiresAt),
          row.and([row('expires_at', '=', after!.expiresAt), row('id', '>', after!.id)]),
        ]),
      ),
    )
    .orderBy('expires_at')
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...apiKeyOf(row), expiresAt: Number(row.expires_at) }));
}

/** Keys that were refused often within an hour. Reads their use page by page, in the order of its primary key. */
export async function findRefused(
  connection: Connection,
  hour: number,
  { least, limit }: { least: number; limit: number },
): Promise<RefusedKey[]> {
  const found: RefusedKey[] = [];
  for (let after = ''; found.length < limit;) {
    const { refused, last } = await connection.run(async (db) => {
      const rows = await db
        .selectFrom('key_usage_hours')
        .select(['key_id', 'forbidden', 'limited', 'refused'])
        .where('hour', '=', hour)
        .where('key_id', '>', after)
        .orderBy('key_id')
        .limit(PAGE_ROWS)
        .execute();
      const often = rows
        .map(({ key_id: id, ...counts }) => ({
          id,
          counts: {
            forbidden: Number(counts.forbidden),
            limited: Number(counts.limited),
            refused: Number(counts.refused),
          },
        }))
        .filter(({ counts: { forbidden, limited, refused } }) => forbidden + limited + refused >= least);
      const keys = new Map<string, RefusedKey['key']>();
      for (const chunk of chunksOf(often.map(({ id }) => id)))
        for (const row of await db.selectFrom('api_keys').selectAll().where('id', 'in', chunk).execute())
          keys.set(row.id, apiKeyOf(row));
      return {
        refused: often.flatMap(({ id, counts }) => (keys.has(id) ? [{ key: keys.get(id)!, counts }] : [])),
        last: rows.length === PAGE_ROWS ? rows.at(-1)!.key_id : undefined,
      };
    });
    found.push(...refused);
    if (last === undefined) break;
    after = last;
  }
  return found.slice(0, limit);
}
