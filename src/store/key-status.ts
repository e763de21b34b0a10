import type { Kysely, SelectQueryBuilder } from 'kysely';
import { chainOf, chainStatus, type Link } from '../keys/authorization/chain.ts';
import type { Status } from '../keys/key/status.ts';
import { selectAncestors } from './families.ts';
import { chunksOf } from './chunks.ts';
import { numberOf } from './rows.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

/** A status, at a time in milliseconds since 1970. */
interface StatusAt {
  is: Status;
  now: number;
}

/** What the status of a key depends on. */
export const STATUS_COLUMNS = [
  'api_keys.id',
  'api_keys.created_by',
  'api_keys.expires_at',
  'api_keys.disabled_at',
] as const;

/** The ids of the keys of a selection that have a status, with their ancestors counted (see `chainStatus`). */
export async function selectIdsOfStatus(
  db: Kysely<Tables>,
  selection: SelectQueryBuilder<Tables, 'api_keys', object>,
  { is, now }: StatusAt,
): Promise<string[]> {
  const links = (await selection.select(STATUS_COLUMNS).execute()).map(linkOf);
  const known = new Map(links.map((link) => [link.id, link]));
  const unknown = new Set(
    links.flatMap(({ createdBy }) => (createdBy === null || known.has(createdBy) ? [] : createdBy)),
  );
  for (const chunk of chunksOf([...unknown])) {
    const ancestors = await selectAncestors(db, chunk).select(STATUS_COLUMNS).execute();
    for (const ancestor of ancestors) known.set(ancestor.id, linkOf(ancestor));
  }
  return links.filter((link) => chainStatus(chainOf(link, known), now) === is).map(({ id }) => id);
}

/** The link of a row in its chain. */
export function linkOf(row: Pick<ApiKeyTable, 'id' | 'created_by' | 'expires_at' | 'disabled_at'>): Link {
  return {
    id: row.id,
    createdBy: row.created_by,
    expiresAt: numberOf(row.expires_at),
    disabledAt: numberOf(row.disabled_at),
  };
}
