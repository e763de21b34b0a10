import { type Kysely, sql } from 'kysely';
import type { Permission } from '../keys/permissions/catalog.ts';
import type { KeyUsage, UsageTotals } from '../keys/key/usage.ts';
import { chunksOf } from './chunks.ts';
import { numberOf } from './rows.ts';
import type { Tables } from './tables.ts';

/** How much keys were used, by their ids. */
export async function findUsage(db: Kysely<Tables>, ids: readonly string[]): Promise<Map<string, UsageTotals>> {
  const found = new Map<string, UsageTotals>();
  for (const chunk of chunksOf(ids)) {
    const rows = await db.selectFrom('key_usage').selectAll().where('key_id', 'in', chunk).execute();
    for (const { key_id: id, uses, last_used_at: last, previous_last_used_at: previous } of rows)
      found.set(id, { uses: Number(uses), lastUsedAt: numberOf(last), previousLastUsedAt: numberOf(previous) });
  }
  return found;
}

/** The grants that a key has used, with the time of the last use of each. */
export async function findUsedPermissions(db: Kysely<Tables>, id: string): Promise<Map<Permission, number>> {
  const rows = await db.selectFrom('used_grants').selectAll().where('key_id', '=', id).orderBy('permission').execute();
  return new Map(rows.map(({ permission, last_used_at: at }) => [permission as Permission, Number(at)]));
}

/** Adds to what is known of the use of keys, inside a transaction that writes; keys that are gone are passed over. */
export async function addUsage(db: Kysely<Tables>, usage: readonly KeyUsage[]): Promise<void> {
  for (const chunk of chunksOf(usage)) {
    const ids = chunk.map(({ id }) => id);
    const rows = await db.selectFrom('api_keys').select('id').where('id', 'in', ids).execute();
    const there = new Set(rows.map(({ id }) => id));
    const known = chunk.filter(({ id }) => there.has(id));
    if (known.length > 0) await addTotals(db, known);
    await addGrants(db, known);
  }
}

async function addTotals(db: Kysely<Tables>, usage: readonly KeyUsage[]): Promise<void> {
  const latest = (column: 'last_used_at' | 'previous_last_used_at') => {
    const [fresh, known] = [sql.ref(`excluded.${column}`), sql.ref(`key_usage.${column}`)];
    return sql<number>`case when ${fresh} is null or ${known} > ${fresh} then ${known} else ${fresh} end`;
  };
  await db
    .insertInto('key_usage')
    .values(
      usage.map(({ id, uses, lastUsedAt, previousLastUsedAt }) => ({
        key_id: id,
        uses,
        last_used_at: lastUsedAt,
        previous_last_used_at: previousLastUsedAt,
      })),
    )
    .onConflict((conflict) =>
      conflict.column('key_id').doUpdateSet({
        uses: sql<number>`key_usage.uses + excluded.uses`,
        last_used_at: latest('last_used_at'),
        previous_last_used_at: latest('previous_last_used_at'),
      }),
    )
    .execute();
}

async function addGrants(db: Kysely<Tables>, usage: readonly KeyUsage[]): Promise<void> {
  const rows = usage.flatMap(({ id, grants, lastUsedAt }) =>
    Array.from(grants, (permission) => ({ key_id: id, permission, last_used_at: lastUsedAt ?? 0 })),
  );
  for (const chunk of chunksOf(rows)) {
    await db
      .insertInto('used_grants')
      .values(chunk)
      .onConflict((conflict) =>
        conflict.columns(['key_id', 'permission']).doUpdateSet({
          last_used_at: sql<number>`case when excluded.last_used_at > used_grants.last_used_at then excluded.last_used_at else used_grants.last_used_at end`,
        }),
      )
      .execute();
  }
}
