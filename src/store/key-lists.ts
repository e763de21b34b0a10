import { sql } from 'kysely';
import { MAX_CHAIN_LENGTH } from '../keys/authorization/index.ts';
import { sortYielding, yieldToEventLoop } from '../keys/basics/index.ts';
import { type Branch, type Branches, KEY_LISTS, type KeySelection, type SelectedKeys } from '../keys/lists/index.ts';
import type { ListPosition } from '../keys/repository/index.ts';
import type { Connection } from './connection.ts';
import { portOfStore } from './port-of-store.ts';
import { apiKeyOf, chunksOf, countRows, idsAmong, idsOf, toNumber } from './rows.ts';
import { idRanges, isFiltered, matchingAmong, positionsOf, readRows, wasNotUsed } from './search-keys.ts';
import { type Condition, findFamily, selectKeys } from './select-keys.ts';

/** Lists of keys for people. */
export const keyLists = portOfStore({
  port: KEY_LISTS,
  read: ({ connection }) => ({
    select: (selection) => select(connection, selection),
    branches: (ids) => findBranches(connection, ids),
  }),
});

async function select(connection: Connection, selection: KeySelection): Promise<SelectedKeys> {
  const { sort, descending, offset, limit } = selection;
  if (!isFiltered(selection)) {
    const total = await connection.run((db) => countRows(db, 'api_keys'));
    const isSorted = sort === 'CREATED' || total <= selection.most;
    const first = isSorted ? undefined : await findFirst(connection, selection);
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
  const { positions, hasMore } = await findPositions(connection, selection);
  const isSorted = sort === 'CREATED' || !hasMore;
  const first = isSorted ? undefined : await findFirst(connection, selection);
  if (first) return { keys: await readKeys(connection, first), total: positions.length, hasMore: true, isSorted: true };
  const sorted = isSorted ? await sortedBy(connection, positions, selection) : positions;
  const keys = await readKeys(connection, idsOf(sorted.slice(offset, offset + limit)));
  return { keys, total: positions.length, hasMore, isSorted };
}

/** The keys with these ids, in their order. */
async function readKeys(connection: Connection, ids: readonly string[]) {
  const rows = new Map((await readRows(connection, ids)).map((row) => [row.id, row]));
  return ids.flatMap((id) => {
    const row = rows.get(id);
    return row ? apiKeyOf(row) : [];
  });
}

/** The positions of selected keys, as far as the search went. */
interface FoundPositions {
  /** In the order of creation, newest first unless requested otherwise. */
  positions: ListPosition[];
  hasMore: boolean;
}

/** How many parts of the keys are searched for a count beyond the page, unless all are wanted. */
const COUNTED_PARTS = 10;

async function findPositions(connection: Connection, selection: KeySelection): Promise<FoundPositions> {
  const { most, offset, limit, countsAll, sort } = selection;
  // Other orders, and selections too large for them, start with the newest.
  const descending = sort === 'CREATED' ? selection.descending : true;
  const found: ListPosition[] = [];
  let parts = 0;
  for await (const positions of positionsOf(connection, selection, { limit: most + 1, descending })) {
    found.push(...positions);
    parts += 1;
    if (!countsAll && parts >= COUNTED_PARTS && found.length >= offset + limit && found.length <= most)
      return { positions: found, hasMore: true };
  }
  return { positions: found.slice(0, most), hasMore: found.length > most };
}

type Db = Parameters<Parameters<Connection['run']>[0]>[0];

/** How many keys with the first or latest uses are considered for a page. */
const MAX_USES = 10_000;
/** How many keys of an order are read at once. */
const PART_KEYS = 500;

/**
 * The ids of the keys of a page by expiry or use, from more keys than can be sorted. An index has the expiries in
 * order; of uses, only the first or latest are kept. Undefined if these do not fill the page, and for names, which
 * every index sorts differently.
 */
async function findFirst(connection: Connection, selection: KeySelection): Promise<string[] | undefined> {
  const { sort, descending, offset, limit, most } = selection;
  const end = offset + limit;
  if ((sort !== 'EXPIRES' && sort !== 'LAST_USED') || end > most) return undefined;
  const matching = await matchingAmong(connection, selection);
  const found: string[] = [];
  const parts = sort === 'EXPIRES' ? endsInOrder(connection, descending) : usesInOrder(connection, descending);
  for (let part = await parts.next(); ; part = await parts.next()) {
    if (part.done && !part.value) return undefined;
    if (part.done) break;
    const ids = await matching(part.value);
    found.push(...part.value.filter((id) => ids.has(id)));
    if (found.length >= end) return found.slice(offset, end);
    await yieldToEventLoop();
  }
  // Keys without a value come last.
  const isWithout: Condition = (row) =>
    sort === 'EXPIRES' ? row('expires_at', 'is', null) : wasNotUsed(sql`last_used_at is not null`);
  const rest = { limit: end - found.length, descending: true };
  for await (const positions of positionsOf(connection, selection, rest, isWithout)) found.push(...idsOf(positions));
  return found.slice(offset, end);
}

/** The ids of all expiring keys, by the index of expiries. @returns true, since all are included */
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

/** The ids of the keys with the first or latest uses. @returns true if all are included */
async function* usesInOrder(connection: Connection, descending: boolean): AsyncGenerator<string[], boolean> {
  const sign = descending ? -1 : 1;
  let best: { id: string; at: number }[] = [];
  for await (const within of idRanges(connection)) {
    const worst = best.length < MAX_USES ? undefined : best.at(-1)!.at;
    const rows = await connection.run((db) =>
      db
        .selectFrom('key_uses')
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
  }
  for (let start = 0; start < best.length; start += PART_KEYS) yield idsOf(best.slice(start, start + PART_KEYS));
  return best.length < MAX_USES;
}

/** The keys in the requested order. Keys without a time come last. */
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
  // Sorts numbers by value and ignores case. Created here, because it takes 3 MB that a server would otherwise keep.
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
      .selectFrom('key_uses')
      .select(['key_id', 'last_used_at'])
      .where('key_id', 'in', ids)
      .execute();
    return rows.map(({ key_id: id, last_used_at: at }) => ({ id, value: toNumber(at) }));
  }
  const rows = await db.selectFrom('api_keys').select(['id', 'name', 'expires_at']).where('id', 'in', ids).execute();
  return rows.map(({ id, name, expires_at: at }) => ({ id, value: sort === 'NAME' ? name : toNumber(at) }));
}

/** See `KeyLists.branchesOf`. Reads generation by generation, each through an index. */
async function findBranches(connection: Connection, ids: readonly string[]): Promise<Branches> {
  const byKey = new Map<string, Branch>(ids.map((id) => [id, { count: 0, lastUsedAt: null }]));
  const known = idsAmong(connection.dialect, ids);
  /** For each key of this generation, the keys that it descends from. */
  let generation = new Map(known.map((id) => [id, [id]]));
  for (let depth = 0; generation.size > 0 && depth < MAX_CHAIN_LENGTH; depth += 1) {
    const next = new Map<string, string[]>();
    for (const chunk of chunksOf([...generation.keys()])) {
      const rows = await connection.run((db) =>
        db
          .selectFrom('api_keys')
          .leftJoin('key_uses', 'key_uses.key_id', 'api_keys.id')
          .select(['api_keys.id', 'api_keys.created_by', 'key_uses.last_used_at'])
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
