import { type Kysely, sql } from 'kysely';
import { MAX_CHAIN_LENGTH } from '../keys/authorization/chain.ts';
import type { ApiKey } from '../keys/key/api-key.ts';
import type { RotatedSecret } from '../keys/key/rotated-secret.ts';
import type { FoundBySecret } from '../keys/repository.ts';
import { yielding, sortYielding } from '../keys/yielding.ts';
import { chunksOf } from './chunks.ts';
import type { Connection, KeyRowBySecret } from './connection.ts';
import { apiKeyOf } from './rows.ts';
import type { ApiKeyTable, KeyRow, Tables } from './tables.ts';

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
      for await (const { id } of yielding(rows))
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
  const byAge = await sortYielding(
    [...keys.values()],
    (one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1),
  );
  const created = new Map<string | null, Key[]>();
  for await (const key of yielding(byAge)) {
    const creator = key.createdBy !== null && keys.has(key.createdBy) ? key.createdBy : null;
    const siblings = created.get(creator);
    if (siblings) siblings.push(key);
    else created.set(creator, [key]);
  }
  const sorted = [...(created.get(null) ?? [])];
  for (const { id } of sorted) for (const child of created.get(id) ?? []) sorted.push(child);
  return sorted;
}

/** The row of the key that had a secret with this digest once, with the public id of that secret. */
function findByRotatedDigest(db: Kysely<Tables>, digest: string) {
  return db
    .selectFrom('rotated_secrets')
    .innerJoin('api_keys', 'api_keys.id', 'rotated_secrets.key_id')
    .selectAll('api_keys')
    .select('rotated_secrets.public_id as rotated_public_id')
    .where('rotated_secrets.digest', '=', digest)
    .executeTakeFirst();
}

/** Remembers secrets that keys had, inside a write transaction. */
export async function addRotatedSecrets(db: Kysely<Tables>, secrets: readonly RotatedSecret[]): Promise<void> {
  for (const { digest, publicId, keyId, rotatedAt } of secrets) {
    const columns = { public_id: publicId, key_id: keyId, rotated_at: rotatedAt };
    await db
      .insertInto('rotated_secrets')
      .values({ digest, ...columns })
      .onConflict((conflict) => conflict.column('digest').doUpdateSet(columns))
      .execute();
  }
}

/** Forgets the secrets that keys lost before a time, in milliseconds since 1970, inside a write transaction. */
export async function forgetRotatedSecrets(db: Kysely<Tables>, before: number): Promise<void> {
  await db.deleteFrom('rotated_secrets').where('rotated_at', '<', before).execute();
}

/** See `KeyRepository.findByDigest`. */
export function findByDigest(
  connection: Connection,
  digest: string,
): FoundBySecret | undefined | Promise<FoundBySecret | undefined> {
  const found = connection.findByDigest?.(digest);
  if (found) return found.row && foundBy(digest, found.row, found.ancestors);
  return connection.run(async (db) => {
    const [live] = await selectByDigests(db, [digest]);
    const row = live ?? (await findByRotatedDigest(db, digest));
    return row && foundBy(digest, row, await selectCreators(db, row));
  });
}

/** The rows of the keys that have a secret with one of these digests. */
export function selectByDigests(db: Kysely<Tables>, digests: readonly string[]): Promise<ApiKeyTable[]> {
  return db
    .selectFrom('api_keys')
    .selectAll()
    .where((row) => row.or([row('digest', 'in', digests), row('previous_digest', 'in', digests)]))
    .execute();
}

async function selectCreators(db: Kysely<Tables>, { created_by }: KeyRow): Promise<KeyRow[]> {
  return created_by === null ? [] : selectAncestors(db, [created_by]).selectAll('api_keys').execute();
}

function foundBy(digest: string, row: KeyRowBySecret, ancestors: readonly KeyRow[]): FoundBySecret {
  const found = { key: apiKeyOf(row), ancestors: byId(ancestors) };
  if (row.rotated_public_id !== undefined) return { ...found, secret: 'rotated', publicId: row.rotated_public_id };
  return row.digest === digest
    ? { ...found, secret: 'current', publicId: found.key.publicId }
    : // A damaged row may be found by a digest that it does not have.
      { ...found, secret: 'previous', publicId: found.key.rotation?.previousPublicId ?? found.key.publicId };
}

function byId(rows: readonly KeyRow[]): Map<string, ApiKey> {
  return new Map(rows.map((row) => [row.id, apiKeyOf(row)]));
}
