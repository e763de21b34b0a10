import { type Kysely, sql } from 'kysely';
import { chainOf, chainStatus, type Link } from '../keys/authorization/chain.ts';
import type { KeyCounts, ListPosition, ListQuery } from '../keys/repository.ts';
import { yielding, yieldToEventLoop } from '../keys/yielding.ts';
import { chunksOf } from './chunks.ts';
import type { Connection } from './connection.ts';
import {
  firstFound,
  isIndexed,
  buildPhrase,
  positionOf,
  rarePartsOf,
  type ReadSlice,
  type Search,
  searchIndex,
  searchSlices,
} from './searches.ts';
import { type Condition, linkOf, matching, selectIdsOfStatus, selectKeys, STATUS_COLUMNS } from './select-keys.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

/** The keys that match a query, by time of creation, then id. */
export async function listKeys(connection: Connection, query: ListQuery): Promise<ApiKeyTable[]> {
  const { search, roles, status } = query;
  const isSearch = connection.dialect === 'sqlite' && (search ?? roles) !== undefined;
  if (isSearch || status) return firstFound(await searchesFor(connection, query));
  const read = createReader(connection, query, await partsFor(connection, query));
  return connection.run((db) => read(db, query));
}

/**
 * The ways to search for the keys that match a query, which all find the same: through the keys in their order, which
 * is fast where many match, and through the index, which is fast where few do.
 */
export async function searchesFor(connection: Connection, query: ListQuery): Promise<Search<ApiKeyTable[]>[]> {
  const rareParts = await partsFor(connection, query);
  const read = createReader(connection, query, rareParts);
  const slices = searchSlices(connection, query, conditionOf(connection, query, rareParts), read);
  const phrase = connection.dialect === 'sqlite' ? buildPhrase(query.search ?? '') : undefined;
  if (phrase === undefined || !(await connection.run(isIndexed))) return [slices];
  return [slices, searchIndex(connection, query, phrase, read)];
}

/** How to read the keys of a slice that match a query. */
function createReader(connection: Connection, query: ListQuery, rareParts: readonly string[]): ReadSlice {
  const { status } = query;
  const condition = conditionOf(connection, query, rareParts);
  const both = (among: Condition | undefined): Condition =>
    among ? (row) => row.and([condition(row), among(row)]) : condition;
  if (!status) return (db, slice, among) => selectKeys(db, slice, both(among)).selectAll().limit(slice.limit).execute();
  return async (db, slice, among) => {
    const ids = await selectIdsOfStatus(db, selectKeys(db, slice, both(among)), status);
    if (ids.length === 0) return [];
    return selectKeys(db, slice, (row) => row('id', 'in', ids.slice(0, slice.limit)))
      .selectAll()
      .execute();
  };
}

function conditionOf({ dialect }: Connection, query: ListQuery, rareParts: readonly string[]): Condition {
  return (row) => matching(row, { ...query, rareParts }, dialect);
}

async function partsFor(connection: Connection, { search }: ListQuery): Promise<string[]> {
  if (connection.dialect === 'sqlite' || search === undefined) return [];
  return rarePartsOf(connection, search);
}

/** How many keys are counted at a time at most, and at first: by an index alone. */
const MAX_SLICE_KEYS = 10_000;
const FIRST_SLICE_KEYS = 1000;
/** How long a slice may take, in milliseconds. With many creators, it takes several times as long as without. */
const MAX_SLICE_MS = 3;

/** Keys of one creator whose own fields say the same of their status. */
interface Group {
  created_by: string | null;
  is_expired: number | boolean;
  is_disabled: number | boolean;
  keys: number | string | bigint;
  next: number | string | null;
}

/**
 * Counts the keys by their status, with their ancestors counted, in slices between which others have their turns. What
 * changes meanwhile may be counted as it was or as it is.
 * @param now milliseconds since 1970
 */
export async function countKeys(connection: Connection, now: number): Promise<KeyCounts> {
  const counts = { ACTIVE: 0, DISABLED: 0, EXPIRED: 0 };
  let nextExpiry: number | null = null;
  let after: ListPosition | undefined;
  // PostgreSQL keeps nobody waiting.
  let size = connection.dialect === 'sqlite' ? FIRST_SLICE_KEYS : MAX_SLICE_KEYS;
  do {
    const start = after;
    const count = size;
    const upTo = await connection.run((db) => lastOfSlice(db, start, count));
    const began = performance.now();
    const groups = await connection.run((db) => selectGroups(db, { after: start, upTo }, now));
    if (connection.dialect === 'sqlite') size = nextSize(size, performance.now() - began);
    await yieldToEventLoop();
    const ancestors = await findAncestors(connection, groups);
    for await (const group of yielding(groups)) {
      const status = chainStatus(chainOf(linkFor(group, now), ancestors), now);
      counts[status] += Number(group.keys);
      if (status !== 'ACTIVE' || group.next === null) continue;
      const next = Number(group.next);
      nextExpiry = Math.min(next, nextExpiry ?? next);
    }
    after = upTo;
    await yieldToEventLoop();
  } while (after);
  return { counts, nextExpiry };
}

function nextSize(size: number, tookMs: number): number {
  if (tookMs > MAX_SLICE_MS) return Math.max(Math.floor(size / 2), FIRST_SLICE_KEYS / 2);
  return tookMs < MAX_SLICE_MS / 2 ? Math.min(size * 2, MAX_SLICE_KEYS) : size;
}

async function lastOfSlice(
  db: Kysely<Tables>,
  after: ListPosition | undefined,
  count: number,
): Promise<ListPosition | undefined> {
  const row = await selectKeys(db, { after }, (key) => key.lit(true))
    .select(['created_at', 'id'])
    .offset(count - 1)
    .limit(1)
    .executeTakeFirst();
  return row && positionOf(row);
}

async function selectGroups(
  db: Kysely<Tables>,
  slice: { after: ListPosition | undefined; upTo: ListPosition | undefined },
  now: number,
): Promise<Group[]> {
  return selectKeys(db, slice, (key) => key.lit(true))
    .clearOrderBy()
    .select([
      'created_by',
      sql<number | boolean>`expires_at is not null and expires_at <= ${now}`.as('is_expired'),
      sql<number | boolean>`disabled_at is not null`.as('is_disabled'),
      sql<number>`count(*)`.as('keys'),
      sql<number | null>`min(expires_at)`.as('next'),
    ])
    .groupBy(['created_by', 'is_expired', 'is_disabled'])
    .execute();
}

/** The keys that created those of these groups, the keys that created them, and so on: each is read once. */
async function findAncestors(connection: Connection, groups: readonly Group[]): Promise<Map<string, Link>> {
  const ancestors = new Map<string, Link>();
  let wanted = new Set(groups.flatMap(({ created_by: creator }) => creator ?? []));
  while (wanted.size > 0) {
    const next = new Set<string>();
    for (const chunk of chunksOf([...wanted])) {
      const rows = await connection.run((db) =>
        db.selectFrom('api_keys').where('id', 'in', chunk).select(STATUS_COLUMNS).execute(),
      );
      for (const row of rows) ancestors.set(row.id, linkOf(row));
      for (const { created_by: creator } of rows) if (creator !== null) next.add(creator);
      await yieldToEventLoop();
    }
    wanted = new Set([...next].filter((id) => !ancestors.has(id)));
  }
  return ancestors;
}

/** A key that stands for those of a group. */
function linkFor(group: Group, now: number): Link {
  return {
    id: '',
    createdBy: group.created_by,
    expiresAt: group.is_expired ? now : null,
    disabledAt: group.is_disabled ? now : null,
  };
}

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
