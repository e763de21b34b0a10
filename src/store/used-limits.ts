import type { Kysely } from 'kysely';
import { USED_LIMITS, type UsedLimit } from '../keys/basics/index.ts';
import { portOfStore } from './port-of-store.ts';
import { chunksOf } from './rows.ts';
import type { Tables } from './tables.ts';

/** How much of their limits keys have used. */
export const usedLimits = portOfStore({
  port: USED_LIMITS,
  read: ({ run }) => ({ find: (keyIds) => run((db) => findUsed(db, keyIds)) }),
  write: ({ db }) => ({
    async insert(used) {
      for (const chunk of chunksOf(used)) {
        const rows = chunk.map(({ keyId, unusedAt, ...limit }) => ({ key_id: keyId, unused_at: unusedAt, ...limit }));
        await db.insertInto('limit_states').values(rows).execute();
      }
    },
  }),
});

async function findUsed(db: Kysely<Tables>, keyIds: readonly string[]): Promise<UsedLimit[]> {
  const found: UsedLimit[] = [];
  for (const chunk of chunksOf(keyIds)) {
    const rows = await db.selectFrom('limit_states').selectAll().where('key_id', 'in', chunk).execute();
    for (const { key_id: keyId, unit, count, unused_at: unusedAt, leases } of rows)
      found.push({ keyId, unit, count: Number(count), unusedAt: Number(unusedAt), leases });
  }
  return found;
}
