import type { ListQuery } from '../keys/repository.ts';
import type { Connection } from './connection.ts';
import { selectIdsOfStatus } from './key-status.ts';
import { rarePartsOf } from './rare-parts.ts';
import { firstFound, type Search } from './searches.ts';
import { isIndexed, phraseOf, searchIndex } from './search-index.ts';
import { type ReadSlice, searchSlices } from './search-slices.ts';
import { type Condition, matching, selectKeys } from './select-keys.ts';
import type { ApiKeyTable } from './tables.ts';

/** The keys that match a query, by time of creation, then id. */
export async function listKeys(connection: Connection, query: ListQuery): Promise<ApiKeyTable[]> {
  const { search, roles, status } = query;
  const isSearch = connection.dialect === 'sqlite' && (search ?? roles) !== undefined;
  if (isSearch || status) return firstFound(await searchesFor(connection, query));
  const read = readerOf(connection, query, await partsFor(connection, query));
  return connection.run((db) => read(db, query));
}

/**
 * The ways to search for the keys that match a query, which all find the same: through the keys in their order, which
 * is fast where many match, and through the index, which is fast where few do.
 */
export async function searchesFor(connection: Connection, query: ListQuery): Promise<Search<ApiKeyTable[]>[]> {
  const rareParts = await partsFor(connection, query);
  const read = readerOf(connection, query, rareParts);
  const slices = searchSlices(connection, query, conditionOf(connection, query, rareParts), read);
  const phrase = connection.dialect === 'sqlite' ? phraseOf(query.search ?? '') : undefined;
  if (phrase === undefined || !(await connection.run(isIndexed))) return [slices];
  return [slices, searchIndex(connection, query, phrase, read)];
}

/** How to read the keys of a slice that match a query. */
function readerOf(connection: Connection, query: ListQuery, rareParts: readonly string[]): ReadSlice {
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
