import { type Kysely, sql } from 'kysely';
import { MAX_CHAIN_LENGTH } from '../keys/authorization/chain.ts';
import type { ApiKey } from '../keys/key/api-key.ts';
import { inTurns, sortInTurns } from '../keys/turns.ts';
import { chunksOf } from './chunks.ts';
import type { Tables } from './tables.ts';

/** Selects from the keys with these ids, the keys that created them, and so on: `MAX_CHAIN_LENGTH` generations. */
export function selectAncestors(db: Kysely<Tables>, ids: readonly string[]) {
  return db
    .withRecursive('ancestors(id, created_by, generation)', (query) =>
      query
        .selectFrom('api_keys')
        .where('id', 'in', ids)
        .select(['id', 'created_by', sql<number>`1`.as('generation')])
        .union(
          query
            .selectFrom('ancestors')
            .innerJoin('api_keys as creator', 'creator.id', 'ancestors.created_by')
            .where('ancestors.generation', '<', MAX_CHAIN_LENGTH)
            .select(['creator.id', 'creator.created_by', sql<number>`ancestors.generation + 1`.as('generation')]),
        ),
    )
    .selectFrom('api_keys')
    .where('id', 'in', (query) => query.selectFrom('ancestors').select('ancestors.id'));
}

/** The ids of keys, of those that they created, and so on: each once. Only an index is read: nobody waits long. */
export async function findFamily(db: Kysely<Tables>, ids: readonly string[]): Promise<string[]> {
  const family = new Set(ids);
  for (let generation = [...family]; generation.length > 0;) {
    const created: string[] = [];
    for (const chunk of chunksOf(generation)) {
      const rows = await db.selectFrom('api_keys').select('id').where('created_by', 'in', chunk).execute();
      for await (const { id } of inTurns(rows))
        if (!family.has(id)) {
          family.add(id);
          created.push(id);
        }
    }
    generation = created;
  }
  return [...family];
}

/** See `KeyFinder.countLive`. */
export async function countLive(db: Kysely<Tables>, creator: string, now: number): Promise<number> {
  const { count } = await db
    .selectFrom('api_keys')
    .select((row) => row.fn.countAll().as('count'))
    .where('created_by', '=', creator)
    .where('disabled_at', 'is', null)
    .where((row) => row.or([row('expires_at', 'is', null), row('expires_at', '>', now)]))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/**
 * Sorts keys by age, each after the key that created it. Sorted by the database, the query would scan all keys in that
 * order.
 */
export async function creatorsFirst<Key extends ApiKey>(keys: ReadonlyMap<string, Key>): Promise<Key[]> {
  const byAge = await sortInTurns(
    [...keys.values()],
    (one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1),
  );
  const created = new Map<string | null, Key[]>();
  for await (const key of inTurns(byAge)) {
    const creator = key.createdBy !== null && keys.has(key.createdBy) ? key.createdBy : null;
    const siblings = created.get(creator);
    if (siblings) siblings.push(key);
    else created.set(creator, [key]);
  }
  const sorted = [...(created.get(null) ?? [])];
  for (const { id } of sorted) for (const child of created.get(id) ?? []) sorted.push(child);
  return sorted;
}
