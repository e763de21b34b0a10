import type { Kysely } from 'kysely';
import type { ListQuery } from '../keys/repository.ts';
import type { Connection } from './connection.ts';
import { selectIdsOfStatus } from './key-status.ts';
import { type KeySlice, searchKeys } from './searches.ts';
import { type Condition, matching, selectKeys } from './select-keys.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

/** The keys that match a query, by time of creation, then id. */
export async function listKeys(connection: Connection, query: ListQuery): Promise<ApiKeyTable[]> {
  const { dialect } = connection;
  const { status } = query;
  const condition: Condition = (row) => matching(row, query, dialect);
  if (status) {
    return searchKeys(connection, query, condition, async (db, slice) => {
      const ids = await selectIdsOfStatus(db, selectKeys(db, slice, condition), status);
      if (ids.length === 0) return [];
      return selectKeys(db, slice, (row) => row('id', 'in', ids.slice(0, slice.limit)))
        .selectAll()
        .execute();
    });
  }
  const read = (db: Kysely<Tables>, slice: KeySlice) =>
    selectKeys(db, slice, condition).selectAll().limit(slice.limit).execute();
  const isSearch = dialect === 'sqlite' && (query.search ?? query.roles) !== undefined;
  return isSearch ? searchKeys(connection, query, condition, read) : connection.run((db) => read(db, query));
}
