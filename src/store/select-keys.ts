import { type Expression, type ExpressionBuilder, type Kysely, type SelectExpression, sql, type SqlBool } from 'kysely';
import { type Link, MAX_CHAIN_LENGTH } from '../keys/authorization/index.ts';
import { yielding, yieldToEventLoop, sortYielding } from '../keys/basics/index.ts';
import type { ApiKey, RotatedSecret } from '../keys/key/index.ts';
import type { FoundBySecret, ListPosition } from '../keys/repository/index.ts';
import type { Connection, DialectName, KeyRowBySecret } from './connection.ts';
import { apiKeyOf, chunksOf, hasHashed, toNumber } from './rows.ts';
import { type ApiKeyTable, KEY_COLUMNS, type KeyRow, type Tables } from './tables.ts';

/** The columns of a key, in a condition. */
export type KeyColumns = ExpressionBuilder<Tables, 'api_keys'>;
/** A condition for selected keys. */
export type Condition = (row: KeyColumns) => Expression<SqlBool>;

/** Keys between two positions, by time of creation, then id, or in reverse. */
export function selectKeys(
  db: Kysely<Tables>,
  {
    after,
    upTo,
    descending = false,
  }: { after?: ListPosition | undefined; upTo?: ListPosition | undefined; descending?: boolean | undefined },
  condition: Condition,
) {
  const direction = descending ? 'desc' : 'asc';
  return db
    .selectFrom('api_keys')
    .where(condition)
    .$if(after !== undefined, (select) =>
      select.where((row) => row(row.refTuple('created_at', 'id'), '>', row.tuple(after!.createdAt, after!.id))),
    )
    .$if(upTo !== undefined, (select) =>
      select.where((row) => row(row.refTuple('created_at', 'id'), '<=', row.tuple(upTo!.createdAt, upTo!.id))),
    )
    .orderBy('created_at', direction)
    .orderBy('id', direction);
}

/**
 * All keys, page by page, with turns for others in between. SQLite reads in file order, since other orders would read
 * pages repeatedly.
 * @param columns the columns to read. Default: those of a key
 */
export async function* pagesOfKeys<Row extends object = KeyRow>(
  connection: Connection,
  limit: number,
  columns: readonly SelectExpression<Tables, 'api_keys'>[] = KEY_COLUMNS,
): AsyncGenerator<Row[]> {
  const position = sql.ref<number | string>(connection.dialect === 'sqlite' ? 'rowid' : 'id');
  let last: number | string | undefined;
  do {
    const rows = await connection.run((db) =>
      db
        .selectFrom('api_keys')
        .select(columns)
        .select(position.as('position'))
        .$if(last !== undefined, (query) => query.where(position, '>', last!))
        .orderBy(position)
        .limit(limit)
        .execute(),
    );
    if (rows.length > 0) yield rows;
    last = rows.length === limit ? rows.at(-1)!.position : undefined;
    // Memory of a page is only released after a turn of the event loop.
    if (last !== undefined) await yieldToEventLoop();
  } while (last !== undefined);
}

/** The columns that determine a key's status. */
const STATUS_COLUMNS = ['api_keys.id', 'api_keys.created_by', 'api_keys.expires_at', 'api_keys.disabled_at'] as const;

/** The link of a row in its chain. */
function linkOf(row: Pick<ApiKeyTable, 'id' | 'created_by' | 'expires_at' | 'disabled_at'>): Link {
  return {
    id: row.id,
    createdBy: row.created_by,
    expiresAt: toNumber(row.expires_at),
    disabledAt: toNumber(row.disabled_at),
  };
}

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

/** Adds the keys with these ids, the keys that created them, and so on, to the known ones. */
export async function addAncestors(
  connection: Connection,
  ids: readonly string[],
  known: Map<string, Link>,
): Promise<void> {
  for (const chunk of chunksOf(ids.filter((id) => !known.has(id)))) {
    const rows = await connection.run((db) => selectAncestors(db, chunk).select(STATUS_COLUMNS).execute());
    for (const row of rows) known.set(row.id, linkOf(row));
    await yieldToEventLoop();
  }
}

/**
 * The ids of keys, their child keys, and so on, each once. Reads only an index, so others do not wait long.
 * @param bounds.limit the number of ids at which it stops. Default: none
 * @param bounds.generations the most generations of child keys. Default: all
 */
export async function findFamily(
  db: Kysely<Tables>,
  ids: readonly string[],
  { limit = Infinity, generations = Infinity }: { limit?: number; generations?: number } = {},
): Promise<string[]> {
  const family = new Set(ids);
  let generation = [...family];
  for (let depth = 0; generation.length > 0 && depth < generations; depth += 1) {
    const created: string[] = [];
    for (const chunk of chunksOf(generation)) {
      if (family.size >= limit) return [...family];
      const rows = await db
        .selectFrom('api_keys')
        .select('id')
        .where('created_by', 'in', chunk)
        .$if(limit < Infinity, (query) => query.limit(limit))
        .execute();
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

/** Sorts keys by age, each after the key that created it. Sorting in the database would scan all keys in that order. */
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

/** The row of the key that once had a secret with this digest, with the public id of that secret. */
function findByRotatedDigest(db: Kysely<Tables>, digest: string) {
  return db
    .selectFrom('rotated_secrets')
    .innerJoin('api_keys', 'api_keys.id', 'rotated_secrets.key_id')
    .selectAll('api_keys')
    .select('rotated_secrets.public_id as rotated_public_id')
    .where('rotated_secrets.digest', '=', digest)
    .executeTakeFirst();
}

/** Records former secrets, inside a write transaction. */
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

/** Removes former secrets that keys lost before a time, at most this many. @returns how many */
export async function forgetRotatedSecrets(db: Kysely<Tables>, before: number, limit: number): Promise<number> {
  const oldest = db.selectFrom('rotated_secrets').select('digest').where('rotated_at', '<', before).limit(limit);
  const { numDeletedRows } = await db.deleteFrom('rotated_secrets').where('digest', 'in', oldest).executeTakeFirst();
  return Number(numDeletedRows);
}

/** See `KeyRepository.findByDigest`. */
export function findByDigest(
  connection: Connection,
  digest: string,
): FoundBySecret | undefined | Promise<FoundBySecret | undefined> {
  const found = connection.findByDigest?.(digest);
  if (found) return found.row && foundBy(digest, found.row, found.ancestors);
  return connection.run(async (db) => {
    const [live] = await selectByDigests(db, connection.dialect, [digest]);
    const row = live ?? (await findByRotatedDigest(db, digest));
    return row && foundBy(digest, row, await selectCreators(db, row));
  });
}

/** The rows of the keys that have a secret with one of these digests. */
export function selectByDigests(
  db: Kysely<Tables>,
  dialect: DialectName,
  digests: readonly string[],
): Promise<ApiKeyTable[]> {
  const keys = db.selectFrom('api_keys').selectAll();
  // An `or` of both reads all rows on PostgreSQL until it has statistics, such as during an import.
  return keys
    .where(() => hasHashed(dialect, 'digest', digests))
    .union(keys.where('previous_digest', 'in', digests))
    .execute();
}

async function selectCreators(db: Kysely<Tables>, { created_by }: KeyRow): Promise<KeyRow[]> {
  return created_by === null ? [] : selectAncestors(db, [created_by]).selectAll('api_keys').execute();
}

/** A key that was found by the digest of one of its secrets. */
export function foundBy(digest: string, row: KeyRowBySecret, ancestors: readonly KeyRow[]): FoundBySecret {
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
