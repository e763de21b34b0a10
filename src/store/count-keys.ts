import { setImmediate } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import { chainOf, chainStatus, type Link } from '../keys/authorization/chain.ts';
import type { KeyCounts, ListPosition } from '../keys/repository.ts';
import { chunksOf } from './chunks.ts';
import type { Connection } from './connection.ts';
import { selectAncestors } from './families.ts';
import { linkOf, STATUS_COLUMNS } from './key-status.ts';
import { positionOf } from './search-slices.ts';
import { selectKeys } from './select-keys.ts';
import type { Tables } from './tables.ts';

/** How many keys are counted at a time: in some milliseconds, by an index alone. */
const SLICE_KEYS = 10_000;

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
  do {
    const start = after;
    const upTo = await connection.run((db) => lastOfSlice(db, start));
    const groups = await connection.run((db) => selectGroups(db, { after: start, upTo }, now));
    const ancestors = await findAncestors(connection, groups);
    for (const group of groups) {
      const status = chainStatus(chainOf(linkFor(group, now), ancestors), now);
      counts[status] += Number(group.keys);
      if (status !== 'ACTIVE' || group.next === null) continue;
      const next = Number(group.next);
      nextExpiry = Math.min(next, nextExpiry ?? next);
    }
    after = upTo;
    await setImmediate();
  } while (after);
  return { counts, nextExpiry };
}

async function lastOfSlice(db: Kysely<Tables>, after: ListPosition | undefined): Promise<ListPosition | undefined> {
  const row = await selectKeys(db, { after }, (key) => key.lit(true))
    .select(['created_at', 'id'])
    .offset(SLICE_KEYS - 1)
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

/** The keys that created those of these groups, the keys that created them, and so on. */
async function findAncestors(connection: Connection, groups: readonly Group[]): Promise<Map<string, Link>> {
  const creators = [...new Set(groups.flatMap(({ created_by: creator }) => creator ?? []))];
  const ancestors = new Map<string, Link>();
  for (const chunk of chunksOf(creators)) {
    const rows = await connection.run((db) => selectAncestors(db, chunk).select(STATUS_COLUMNS).execute());
    for (const row of rows) ancestors.set(row.id, linkOf(row));
    await setImmediate();
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
