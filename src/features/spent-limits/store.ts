import type { Kysely } from 'kysely';
import { USED_LIMITS, type UsedLimit } from '../../keys/basics/index.ts';
import { chunksOf, portOfStore, type StoreOfFeature, type Tables } from '../../store/index.ts';

/** Usage of limits by key. */
const spentLimits = portOfStore({
  port: USED_LIMITS,
  read: ({ run }) => ({ find: (keyIds) => run((db) => findSpent(db, keyIds)) }),
  write: ({ db }) => ({
    async insert(spent) {
      for (const chunk of chunksOf(spent)) {
        const rows = chunk.map(({ keyId, unusedAt, ...limit }) => ({ key_id: keyId, unused_at: unusedAt, ...limit }));
        await db.insertInto('limit_states').values(rows).execute();
      }
    },
  }),
});

/** Its part of a store: the tables are those of limits. */
export const spentLimitStore: StoreOfFeature = { ports: [spentLimits] };

async function findSpent(db: Kysely<Tables>, keyIds: readonly string[]): Promise<UsedLimit[]> {
  const found: UsedLimit[] = [];
  for (const chunk of chunksOf(keyIds)) {
    const rows = await db.selectFrom('limit_states').selectAll().where('key_id', 'in', chunk).execute();
    for (const { key_id: keyId, unit, count, unused_at: unusedAt, leases } of rows)
      found.push({ keyId, unit, count: Number(count), unusedAt: Number(unusedAt), leases });
  }
  return found;
}
