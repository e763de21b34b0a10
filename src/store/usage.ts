import { type Kysely, sql } from 'kysely';
import type { Permission } from '../keys/permissions/catalog.ts';
import type { KeyUsage, UsageTotals } from '../keys/key/usage.ts';
import { chunksOf } from './chunks.ts';
import { numberOf } from './rows.ts';
import type { Tables } from './tables.ts';

/** The totals of keys, by id; keys that were never used are left out. */
export async function findUsage(db: Kysely<Tables>, ids: readonly string[]): Promise<Map<string, UsageTotals>> {
  const found = new Map<string, UsageTotals>();
  for (const chunk of chunksOf(ids)) {
    const rows = await db.selectFrom('key_usage').selectAll().where('key_id', 'in', chunk).execute();
    for (const { key_id: id, uses, last_used_at: last, previous_last_used_at: previous } of rows)
      found.set(id, { uses: Number(uses), lastUsedAt: numberOf(last), previousLastUsedAt: numberOf(previous) });
  }
  return found;
}

/** The permissions that keys have used, by id, each with the time of its last use. */
export async function findUsedPermissions(
  db: Kysely<Tables>,
  ids: readonly string[],
): Promise<Map<string, Map<Permission, number>>> {
  const found = new Map<string, Map<Permission, number>>(ids.map((id) => [id, new Map()]));
  for (const chunk of chunksOf(ids)) {
    const rows = await db
      .selectFrom('used_grants')
      .selectAll()
      .where('key_id', 'in', chunk)
      .orderBy('key_id')
      .orderBy('permission')
      .execute();
    for (const { key_id: id, permission, last_used_at: at } of rows)
      found.get(id)?.set(permission as Permission, Number(at));
  }
  return found;
}

/** Adds to the totals of keys, inside a write transaction. Keys that no longer exist are ignored. */
export async function addUsage(db: Kysely<Tables>, usage: readonly KeyUsage[]): Promise<void> {
  for (const chunk of chunksOf(usage)) {
    const ids = chunk.map(({ id }) => id);
    const rows = await db.selectFrom('api_keys').select('id').where('id', 'in', ids).execute();
    const existingIds = new Set(rows.map(({ id }) => id));
    const existing = chunk.filter(({ id }) => existingIds.has(id));
    if (existing.length > 0) await addTotals(db, existing);
    await addPermissions(db, existing);
  }
}

async function addTotals(db: Kysely<Tables>, usage: readonly KeyUsage[]): Promise<void> {
  const latest = (column: 'last_used_at' | 'previous_last_used_at') => {
    const [added, stored] = [sql.ref(`excluded.${column}`), sql.ref(`key_usage.${column}`)];
    return sql<number>`case when ${added} is null or ${stored} > ${added} then ${stored} else ${added} end`;
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

async function addPermissions(db: Kysely<Tables>, usage: readonly KeyUsage[]): Promise<void> {
  const rows = usage.flatMap(({ id, permissions, lastUsedAt }) =>
    Array.from(permissions, (permission) => ({ key_id: id, permission, last_used_at: lastUsedAt ?? 0 })),
  );
  for (const chunk of chunksOf(rows)) {
    await db
      .insertInto('used_grants')
      .values(chunk)
      .onConflict((conflict) =>
        conflict.columns(['key_id', 'permission']).doUpdateSet({
          last_used_at: sql<number>`case when excluded.last_used_at > used_grants.last_used_at
            then excluded.last_used_at else used_grants.last_used_at end`,
        }),
      )
      .execute();
  }
}
