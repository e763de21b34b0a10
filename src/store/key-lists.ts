import { sql } from 'kysely';
import { MAX_CHAIN_LENGTH } from '../keys/authorization/index.ts';
import { sortYielding, yieldToEventLoop } from '../keys/basics/index.ts';
import { type Branch, type Branches, KEY_LISTS, type KeySelection, type SelectedKeys } from '../keys/lists/index.ts';
import type { ListPosition } from '../keys/repository/index.ts';
import { type Connection, type DialectName, portOfStore } from './connection.ts';
import { apiKeyOf, chunksOf, countRows, idsAmong, idsOf, labelOfTag, searchTextOf, toNumber } from './rows.ts';
import {
  findEnding,
  findIndexed,
  findLabelled,
  findOwned,
  findOwners,
  findUnused,
  idRanges,
  isAmong,
  isFiltered,
  isFoundByParts,
  isMerged,
  isOfNobody,
  KeyReader,
  type Owners,
  rarePartsOf,
  rowNumbers,
  readRows,
  slicesOf,
  wasNotUsed,
} from './search-keys.ts';
import { type Condition, findFamily, selectKeys } from './select-keys.ts';

/** Keys as people look through them. */
export const keyLists = portOfStore({
  port: KEY_LISTS,
  read: ({ connection }) => ({
    select: (selection) => select(connection, selection),
    branches: (ids) => findBranches(connection, ids),
  }),
});

/** Among how many an index leads to keys: each has to be looked up. */
const MAX_CANDIDATES = 10_000;

async function select(connection: Connection, selection: KeySelection): Promise<SelectedKeys> {
  const { sort, descending, offset, limit } = selection;
  if (!isFiltered(selection)) {
    const total = await connection.run((db) => countAll(db, connection.dialect));
    const isSorted = sort === 'CREATED' || total <= selection.most;
    const first = isSorted ? undefined : await findFirst(connection, selection, undefined);
    if (first) return { keys: await readKeys(connection, first), total, hasMore: false, isSorted: true };
    if (sort === 'CREATED' || !isSorted) {
      const rows = await connection.run((db) =>
        selectKeys(db, { descending: isSorted ? descending : true }, (row) => row.lit(true))
          .select(['created_at', 'id'])
          .offset(offset)
          .limit(limit)
          .execute(),
      );
      return { keys: await readKeys(connection, idsOf(rows)), total, hasMore: false, isSorted };
    }
  }
  const { owner } = selection;
  const owners = owner === undefined ? undefined : await findOwners(connection, owner);
  const { positions, hasMore } = await findPositions(connection, selection, owners);
  const isSorted = sort === 'CREATED' || !hasMore;
  const first = isSorted ? undefined : await findFirst(connection, selection, owners);
  if (first) return { keys: await readKeys(connection, first), total: positions.length, hasMore: true, isSorted: true };
  const sorted = isSorted ? await sortedBy(connection, positions, selection) : positions;
  const keys = await readKeys(connection, idsOf(sorted.slice(offset, offset + limit)));
  return { keys, total: positions.length, hasMore, isSorted };
}

/** How many keys there are: in a file without those of an import that has not inserted all, see `VISIBLE_KEYS`. */
async function countAll(db: Db, dialect: DialectName): Promise<number> {
  if (dialect === 'postgres') return countRows(db, 'api_keys');
  const { rows } = await sql<{ count: number }>`select (select count(*) from main.api_keys)
    - (select count(*) from main.pending_rows join main.api_keys as stored on stored.rowid between first and last)
    as count`.execute(db);
  return rows[0]!.count;
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

async function findPositions(
  connection: Connection,
  selection: KeySelection,
  owners: Owners | undefined,
): Promise<FoundPositions> {
  const { most, offset, limit, lookingMs, sort } = selection;
  // What is sorted otherwise, or cannot be, begins with the newest.
  const descending = sort === 'CREATED' ? selection.descending : true;
  if (owners?.isNobody || isOfNobody(connection, selection)) return { positions: [], hasMore: false };
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
    const created = await connection.run((db) =>
      db
        .selectFrom('api_keys')
        .select('id')
        .where('created_by', '=', creator)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(MAX_CANDIDATES + 1)
        .execute(),
    );
    return withIds([...(createdBy === undefined || createdBy === null ? [creator] : []), ...idsOf(created)]);
  }
  if (expires) return withIds(await connection.run((db) => findEnding(db, expires, MAX_CANDIDATES + 1)));
  const limit = MAX_CANDIDATES + 1;
  if (owners) {
    const owned = await connection.run((db) => findOwned(db, owners, limit));
    if (owned.size < limit) return withIds(await connection.run((db) => findFamily(db, [...owned])));
  }
  for (const tag of tags) {
    const labelled = await connection.run((db) => findLabelled(db, labelOfTag(tag), { limit }));
    if (labelled.length < limit) return withIds(idsOf(labelled));
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

function compare(one: ListPosition, other: ListPosition): number {
  return one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1);
}

/** How many keys with the first or latest uses are looked at for those of a page. */
const MAX_USES = 10_000;
/** How many keys are looked at at once, of those in an order. */
const PART_KEYS = 500;

/**
 * The ids of the keys of a page, by their ends or uses, of more keys than are sorted. An index has the ends in order,
 * and of uses only the first or latest are kept. Undefined where these do not fill the page, and for names, which stand
 * in another order in every index.
 */
async function findFirst(
  connection: Connection,
  selection: KeySelection,
  owners: Owners | undefined,
): Promise<string[] | undefined> {
  const { sort, descending, offset, limit, most } = selection;
  const end = offset + limit;
  if ((sort !== 'EXPIRES' && sort !== 'LAST_USED') || end > most) return undefined;
  const reader = new KeyReader(connection, selection, owners);
  const found: string[] = [];
  const parts = sort === 'EXPIRES' ? endsInOrder(connection, descending) : usesInOrder(connection, descending);
  for (let part = await parts.next(); ; part = await parts.next()) {
    if (part.done && !part.value) return undefined;
    if (part.done) break;
    const { value } = part;
    const matching = await reader.positions({ limit: value.length }, (row) => row('id', 'in', value));
    const ids = new Set(matching.map(({ id }) => id));
    found.push(...value.filter((id) => ids.has(id)));
    if (found.length >= end) return found.slice(offset, end);
    await yieldToEventLoop();
  }
  // Those that have none come last.
  const isWithout: Condition = (row) =>
    sort === 'EXPIRES' ? row('expires_at', 'is', null) : wasNotUsed(sql`last_used_at is not null`);
  for (const slice of await slicesOf(connection, reader, true)) {
    const rest = await reader.positions({ ...slice, limit: end - found.length }, isWithout);
    found.push(...idsOf(rest));
    if (found.length >= end) break;
    await yieldToEventLoop();
  }
  return found.slice(offset, end);
}

/** The ids of all keys that expire, by the index of ends. @returns true, as they are all */
async function* endsInOrder(connection: Connection, descending: boolean): AsyncGenerator<string[], boolean> {
  const [direction, after] = descending ? (['desc', '<'] as const) : (['asc', '>'] as const);
  for (let last: { id: string; at: number } | undefined; ;) {
    const rows = await connection.run((db) =>
      db
        .selectFrom('api_keys')
        .select(['id', 'expires_at as at'])
        .where('expires_at', 'is not', null)
        .$if(last !== undefined, (query) =>
          query.where((row) => row(row.refTuple('expires_at', 'id'), after, row.tuple(last!.at, last!.id))),
        )
        .orderBy('expires_at', direction)
        .orderBy('id', direction)
        .limit(PART_KEYS)
        .execute(),
    );
    const end = rows.at(-1);
    if (!end) return true;
    last = { id: end.id, at: Number(end.at) };
    yield idsOf(rows);
  }
}

/** The ids of the keys with the first or latest uses. @returns whether they are all */
async function* usesInOrder(connection: Connection, descending: boolean): AsyncGenerator<string[], boolean> {
  const sign = descending ? -1 : 1;
  let best: { id: string; at: number }[] = [];
  const { first, last } = connection.dialect === 'sqlite' ? await connection.run(rowNumbers) : { first: 0, last: 0 };
  for (const within of idRanges(last - first)) {
    const worst = best.length < MAX_USES ? undefined : best.at(-1)!.at;
    const rows = await connection.run((db) =>
      db
        .selectFrom('key_usage')
        .select(['key_id as id', 'last_used_at as at'])
        .where('last_used_at', 'is not', null)
        .where(within(sql.ref('key_id')))
        .$if(worst !== undefined, (query) => query.where('last_used_at', descending ? '>' : '<', worst!))
        .orderBy('last_used_at', descending ? 'desc' : 'asc')
        .limit(MAX_USES)
        .execute(),
    );
    const all = [...best, ...rows.map(({ id, at }) => ({ id, at: Number(at) }))];
    best = (await sortYielding(all, (one, other) => sign * (one.at - other.at))).slice(0, MAX_USES);
    await yieldToEventLoop();
  }
  for (let start = 0; start < best.length; start += PART_KEYS) yield idsOf(best.slice(start, start + PART_KEYS));
  return best.length < MAX_USES;
}

/** The keys in the order that is asked for. What has no time comes last. */
async function sortedBy(
  connection: Connection,
  positions: readonly ListPosition[],
  { sort, descending }: KeySelection,
): Promise<readonly ListPosition[]> {
  if (sort === 'CREATED') return positions;
  const values = new Map<string, string | number | null>();
  for (const chunk of chunksOf(idsOf(positions))) {
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
  const known = idsAmong(connection.dialect, ids);
  /** Of which of the keys each one is a child key. */
  let generation = new Map(known.map((id) => [id, [id]]));
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
    ids.length === 1 ? 1 + byKey.get(ids[0]!)!.count : (await connection.run((db) => findFamily(db, known))).length;
  return { byKey, total };
}

function latest(one: number | null, other: number | null): number | null {
  return one === null || (other !== null && other > one) ? other : one;
}
