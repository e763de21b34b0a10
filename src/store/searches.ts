import { setImmediate } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import type { AuditEntry, AuditQuery, AuditReader } from '../keys/audit/audit-entry.ts';
import type { ListPosition } from '../keys/repository.ts';
import type { Connection } from './connection.ts';
import { type Condition, selectKeys } from './select-keys.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

/**
 * SQLite reads in this process, and nothing else runs meanwhile: a search that may read the whole table reads so many
 * rows at a time.
 */
const SLICE_KEYS = 1000;
const SLICE_ENTRIES = 5000;

/** A part of the keys, in their order, and how many of it are needed. */
export interface KeySlice {
  after?: ListPosition | undefined;
  upTo?: ListPosition | undefined;
  limit: number;
}

/**
 * The keys that `read` finds in a search through all that match `condition`, slice by slice until there are enough.
 * PostgreSQL finds the next that match without anybody waiting; SQLite is asked for a slice of all.
 */
export async function searchKeys(
  connection: Connection,
  { after, limit }: Pick<KeySlice, 'after' | 'limit'>,
  condition: Condition,
  read: (db: Kysely<Tables>, slice: KeySlice) => Promise<ApiKeyTable[]>,
): Promise<ApiKeyTable[]> {
  const found: ApiKeyTable[] = [];
  const inSlice: Condition = connection.dialect === 'sqlite' ? (row) => row.lit(true) : condition;
  for (let start = after; ;) {
    const position = start;
    const upTo = await connection.run((db) => lastOfSlice(db, position, inSlice));
    const slice = { after: position, upTo, limit: limit - found.length };
    found.push(...(await connection.run((db) => read(db, slice))));
    if (!upTo || found.length >= limit) return found;
    start = upTo;
    await setImmediate();
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
  return row && { createdAt: Number(row.created_at), id: row.id };
}

/** The entries that match a query, in its order, slice by slice until there are enough. */
export async function searchAuditLog(reader: AuditReader, query: AuditQuery): Promise<AuditEntry[]> {
  const [head, start] = [await reader.head(), await reader.start()];
  let [after, before] = [
    Math.max(query.after ?? 0, start?.number ?? 0),
    Math.min(query.before ?? Infinity, (head?.number ?? 0) + 1),
  ];
  const found: AuditEntry[] = [];
  while (found.length < query.limit && after < before - 1) {
    const slice =
      query.order === 'newest'
        ? { after: Math.max(after, before - 1 - SLICE_ENTRIES), before }
        : { after, before: Math.min(before, after + 1 + SLICE_ENTRIES) };
    found.push(...(await reader.find({ ...query, ...slice, limit: query.limit - found.length })));
    if (query.order === 'newest') before = slice.after + 1;
    else after = slice.before - 1;
    await setImmediate();
  }
  return found;
}
