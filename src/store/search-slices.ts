import type { Kysely } from 'kysely';
import type { ListPosition } from '../keys/repository.ts';
import type { Connection } from './connection.ts';
import type { Search } from './searches.ts';
import { type Condition, selectKeys } from './select-keys.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

/** A search that may read all keys reads so many at a time. */
const SLICE_KEYS = 1000;

/** A part of the keys, in their order, and how many of it are needed. */
export interface KeySlice {
  after?: ListPosition | undefined;
  upTo?: ListPosition | undefined;
  limit: number;
}

/** Reads those of the keys in a slice that are asked for, in their order, if they fulfil one more condition. */
export type ReadSlice = (db: Kysely<Tables>, slice: KeySlice, among?: Condition) => Promise<ApiKeyTable[]>;

/**
 * The keys that `read` finds in a search through all that match `condition`, slice by slice until there are enough.
 * PostgreSQL finds the next that match without anybody waiting; SQLite is asked for a slice of all.
 */
export async function* searchSlices(
  connection: Connection,
  { after, limit }: KeySlice,
  condition: Condition,
  read: ReadSlice,
): Search<ApiKeyTable[]> {
  const found: ApiKeyTable[] = [];
  const inSlice: Condition = connection.dialect === 'sqlite' ? (row) => row.lit(true) : condition;
  for (let start = after; ;) {
    const position = start;
    const upTo = await connection.run((db) => lastOfSlice(db, position, inSlice));
    const slice = { after: position, upTo, limit: limit - found.length };
    found.push(...(await connection.run((db) => read(db, slice))));
    if (!upTo || found.length >= limit) return found;
    start = upTo;
    yield;
  }
}

async function lastOfSlice(
  db: Kysely<Tables>,
  after: ListPosition | undefined,
  inSlice: Condition,
): Promise<ListPosition | undefined> {
  const row = await selectKeys(db, { after }, inSlice)
    .select(['created_at', 'id'])
    .offset(SLICE_KEYS - 1)
    .limit(1)
    .executeTakeFirst();
  return row && positionOf(row);
}

/** Where a key stands in their order. */
export function positionOf(row: Pick<ApiKeyTable, 'created_at' | 'id'>): ListPosition {
  return { createdAt: Number(row.created_at), id: row.id };
}
