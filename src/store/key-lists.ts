import { sql } from 'kysely';
import { MAX_CHAIN_LENGTH } from '../keys/authorization/index.ts';
import { sortYielding, yieldToEventLoop } from '../keys/basics/index.ts';
import { type Branch, type Branches, KEY_LISTS, type KeySelection, type SelectedKeys } from '../keys/lists/index.ts';
import type { ListPosition } from '../keys/repository/index.ts';
import { type Connection, type DialectName, portOfStore } from './connection.ts';
import { apiKeyOf, chunksOf, labelOfTag, searchTextOf, toNumber } from './rows.ts';
import {
  findEnding,
  findIndexed,
  findLabelled,
  findOwned,
  findOwners,
  findUnused,
  isAmong,
  isFiltered,
  isFoundByParts,
  isMerged,
  KeyReader,
  type Owners,
  rarePartsOf,
  readRows,
  slicesOf,
} from './search-keys.ts';
import { type Condition, findFamily, selectKeys } from './select-keys.ts';

/** Keys as people look through them. */
export const keyLists = portOfStore({
  port: KEY_LISTS,
  read: ({ connection }) => ({
    select: (selection) => select(connection, selection),
    branches: (ids) => findBranches(connection, ids),
  }),
  empty: () => ({
    select: async () => ({ keys: [], total: 0, hasMore: false, isSorted: true }),
    branches: async () => ({ byKey: new Map(), total: 0 }),
  }),
});

/** Among how many an index leads to keys: each has to be looked up. */
const MAX_CANDIDATES = 10_000;

async function select(connection: Connection, selection: KeySelection): Promise<SelectedKeys> {
  const { sort, descending, offset, limit } = selection;
  if (!isFiltered(selection)) {
    const total = await connection.run((db) => countAll(db, connection.dialect));
    const isSorted = sort === 'CREATED' || total <= selection.most;
    if (sort === 'CREATED' || !isSorted) {
      const rows = await connection.run((db) =>
        selectKeys(db, { descending: isSorted ? descending : true }, (row) => row.lit(true))
          .select(['created_at', 'id'])
          .offset(offset)
          .limit(limit)
          .execute(),
      );
      return {
        keys: await readKeys(
          connection,
          rows.map(({ id }) => id),
        ),
        total,
        hasMore: false,
        isSorted,
      };
    }
  }
  const { positions, hasMore } = await findPositions(connection, selection);
  const isSorted = sort === 'CREATED' || !hasMore;
  const sorted = isSorted ? await sortedBy(connection, positions, selection) : positions;
  const page = sorted.slice(offset, offset + limit);
  const keys = await readKeys(
    connection,
    page.map(({ id }) => id),
  );
  return { keys, total: positions.length, hasMore, isSorted };
}

/** How many keys there are: in a file without those of an import that has not inserted all, see `VISIBLE_KEYS`. */
async function countAll(db: Db, dialect: DialectName): Promise<number> {
  const { rows } = await (
    dialect === 'postgres'
      ? sql<{ count: number | string }>`select count(*) as count from api_keys`
      : sql<{ count: number | string }>`select (select count(*) from main.api_keys)
          - (select count(*) from main.pending_rows join main.api_keys as stored on stored.rowid between first and last)
          as count`
  ).execute(db);
  return Number(rows[0]!.count);
}

/** The keys with these ids, in their order. */
async function readKeys(connection: Connection, ids: readonly string[]) {
  const rows = new Map((await readRows(connection, ids)).map((row) => [row.id, row]));
  return ids.flatMap((id) => {
    const row = rows.get(id);
    return row ? apiKeyOf(row) : [];
  });
}

/** The keys of a selection, as far as they were looked for. */
interface FoundPositions {
  /** By their creation, the newest first, unless it is asked for the other way round. */
  positions: ListPosition[];
  hasMore: boolean;
}

async function findPositions(connection: Connection, selection: KeySelection): Promise<FoundPositions> {
  const { most, offset, limit, lookingMs, sort } = selection;
  // What is sorted otherwise, or cannot be, begins with the newest.
  const descending = sort === 'CREATED' ? selection.descending : true;
  const { owner } = selection;
  const owners = owner === undefined ? undefined : await findOwners(connection, owner);
  if (owners?.isNobody) return { positions: [], hasMore: false };
  const all = new KeyReader(connection, selection, owners);
  const enough = (positions: ListPosition[], hasMore = false): FoundPositions => ({
    positions: positions.slice(0, most),
    hasMore: hasMore || positions.length > most,
  });
  const indexed = await findCandidates(connection, selection, owners);
  const unused = indexed ? undefined : await unusedAmong(connection, selection);
  const [candidates, reader] = [indexed ?? unused, unused ? all.withoutUse() : all];
  if (candidates) {
    const found: ListPosition[] = [];
    for (const isOne of candidates) {
      found.push(...(await reader.positions({ limit: MAX_CANDIDATES + 1, descending }, isOne)));
      await yieldToEventLoop();
    }
    const sign = descending ? -1 : 1;
    return enough(await sortYielding(found, (one, other) => sign * compare(one, other)));
  }
  const began = performance.now();
  const found: ListPosition[] = [];
  const slices = await slicesOf(connection, reader, descending);
  for (const [index, slice] of slices.entries()) {
    found.push(...(await reader.positions({ ...slice, limit: most + 1 - found.length })));
    if (found.length > most) break;
    const isFull = found.length >= offset + limit;
    if (isFull && performance.now() - began > lookingMs) return enough(found, index < slices.length - 1);
    await yieldToEventLoop();
  }
  return enough(found);
}

/**
 * Among which keys to look, by an index that has them, each a part of them for a statement; undefined where none has
 * few enough.
 */
async function findCandidates(
  connection: Connection,
  selection: KeySelection,
  owners: Owners | undefined,
): Promise<Condition[] | undefined> {
  const { createdBy, ownedBy, expires, tags = [], search } = selection;
  const withIds = (ids: readonly string[]) =>
    ids.length > MAX_CANDIDATES
      ? undefined
      : chunksOf(ids).map(
          (chunk): Condition =>
            (row) =>
              row('id', 'in', chunk),
        );
  const creator = createdBy ?? ownedBy;
  if (creator !== undefined) {
    const created = await idsBy(connection, (db) =>
      db
        .selectFrom('api_keys')
        .select('id')
        .where('created_by', '=', creator)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(MAX_CANDIDATES + 1),
    );
    return withIds(createdBy === undefined || createdBy === null ? [creator, ...created] : created);
  }
  if (expires) return withIds(await connection.run((db) => findEnding(db, expires, MAX_CANDIDATES + 1)));
  const limit = MAX_CANDIDATES + 1;
  if (owners) {
    const owned = await connection.run((db) => findOwned(db, owners, limit));
    if (owned.size < limit) return withIds(await connection.run((db) => findFamily(db, [...owned])));
  }
  for (const tag of tags) {
    const labelled = await connection.run((db) => findLabelled(db, labelOfTag(tag), { limit }));
    if (labelled.length < limit) return withIds(labelled.map(({ id }) => id));
  }
  if (search === undefined) return undefined;
  if (connection.dialect === 'sqlite') return withNumbers(await findIndexed(connection, search));
  const parts = await rarePartsOf(connection, search);
  const text = searchTextOf({ name: search, description: null });
  return parts.length > 0 ? [() => isFoundByParts(text, parts)] : undefined;
}

/** The same among those that were not used. */
async function unusedAmong(connection: Connection, selection: KeySelection): Promise<Condition[] | undefined> {
  if (!isMerged(connection, selection)) return undefined;
  const search = findUnused(connection, selection, MAX_CANDIDATES);
  for (;;) {
    const step = await search.next();
    if (step.done) return withNumbers(step.value);
    await yieldToEventLoop();
  }
}

function withNumbers(numbers: readonly number[] | undefined): Condition[] | undefined {
  return numbers && chunksOf(numbers).map((chunk) => () => isAmong(chunk));
}

type Db = Parameters<Parameters<Connection['run']>[0]>[0];

async function idsBy(
  connection: Connection,
  query: (db: Db) => { execute(): Promise<{ id: string }[]> },
): Promise<string[]> {
  return (await connection.run((db) => query(db).execute())).map(({ id }) => id);
}

function compare(one: ListPosition, other: ListPosition): number {
  return one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1);
}

/** The keys in the order that is asked for. What has no time comes last. */
async function sortedBy(
  connection: Connection,
  positions: readonly ListPosition[],
  { sort, descending }: KeySelection,
): Promise<readonly ListPosition[]> {
  if (sort === 'CREATED') return positions;
  const values = new Map<string, string | number | null>();
  for (const chunk of chunksOf(positions.map(({ id }) => id))) {
    for (const { id, value } of await connection.run((db) => valuesOf(db, chunk, sort))) values.set(id, value);
    await yieldToEventLoop();
  }
  const sign = descending ? -1 : 1;
  // By numbers as people count them, and whatever the case. Made here: it takes 3 MB, which would stay with a server.
  const names = new Intl.Collator('en', { numeric: true });
  return sortYielding(positions, (one, other) => {
    const [first, second] = [values.get(one.id) ?? null, values.get(other.id) ?? null];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return sign * (typeof first === 'string' ? names.compare(first, second as string) : first - (second as number));
  });
}

async function valuesOf(
  db: Db,
  ids: readonly string[],
  sort: 'NAME' | 'EXPIRES' | 'LAST_USED',
): Promise<{ id: string; value: string | number | null }[]> {
  if (sort === 'LAST_USED') {
    const rows = await db
      .selectFrom('key_usage')
      .select(['key_id', 'last_used_at'])
      .where('key_id', 'in', ids)
      .execute();
    return rows.map(({ key_id: id, last_used_at: at }) => ({ id, value: toNumber(at) }));
  }
  const rows = await db.selectFrom('api_keys').select(['id', 'name', 'expires_at']).where('id', 'in', ids).execute();
  return rows.map(({ id, name, expires_at: at }) => ({ id, value: sort === 'NAME' ? name : toNumber(at) }));
}

/** See `KeyLists.branchesOf`. One generation is read after another, each by an index. */
async function findBranches(connection: Connection, ids: readonly string[]): Promise<Branches> {
  const byKey = new Map<string, Branch>(ids.map((id) => [id, { count: 0, lastUsedAt: null }]));
  /** Of which of the keys each one is a child key. */
  let generation = new Map(ids.map((id) => [id, [id]]));
  for (let depth = 0; generation.size > 0 && depth < MAX_CHAIN_LENGTH; depth += 1) {
    const next = new Map<string, string[]>();
    for (const chunk of chunksOf([...generation.keys()])) {
      const rows = await connection.run((db) =>
        db
          .selectFrom('api_keys')
          .leftJoin('key_usage', 'key_usage.key_id', 'api_keys.id')
          .select(['api_keys.id', 'api_keys.created_by', 'key_usage.last_used_at'])
          .where('api_keys.created_by', 'in', chunk)
          .execute(),
      );
      for (const { id, created_by: creator, last_used_at: at } of rows) {
        const tops = generation.get(creator!)!;
        next.set(id, tops);
        for (const top of tops) {
          const { count, lastUsedAt } = byKey.get(top)!;
          byKey.set(top, { count: count + 1, lastUsedAt: latest(lastUsedAt, toNumber(at)) });
        }
      }
      await yieldToEventLoop();
    }
    generation = next;
  }
  const total =
    ids.length === 1 ? 1 + byKey.get(ids[0]!)!.count : (await connection.run((db) => findFamily(db, ids))).length;
  return { byKey, total };
}

function latest(one: number | null, other: number | null): number | null {
  return one === null || (other !== null && other > one) ? other : one;
}
