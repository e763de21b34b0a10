import {
  type Expression,
  type ExpressionBuilder,
  type Kysely,
  type RawBuilder,
  type SelectQueryBuilder,
  sql,
  type SqlBool,
} from 'kysely';
import { chainOf, chainStatus, type Link } from '../keys/authorization/chain.ts';
import type { Status } from '../keys/key/status.ts';
import type { KeyFilter, ListPosition } from '../keys/repository.ts';
import { chunksOf } from './chunks.ts';
import type { DialectName } from './connection.ts';
import { selectAncestors } from './families.ts';
import { toNumber, searchTextOf } from './rows.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

type KeyColumns = ExpressionBuilder<Tables, 'api_keys'>;
/** Whether a key is selected. */
export type Condition = (row: KeyColumns) => Expression<SqlBool>;

/** A filter, and those parts of what it searches for that PostgreSQL's index is asked for: see `rarePartsOf`. */
interface FilterInParts extends KeyFilter {
  rareParts: readonly string[];
}

/** Keys between two positions, by time of creation, then id. */
export function selectKeys(
  db: Kysely<Tables>,
  { after, upTo }: { after?: ListPosition | undefined; upTo?: ListPosition | undefined },
  condition: Condition,
) {
  return db
    .selectFrom('api_keys')
    .where(condition)
    .$if(after !== undefined, (select) =>
      select.where((row) => row(row.refTuple('created_at', 'id'), '>', row.tuple(after!.createdAt, after!.id))),
    )
    .$if(upTo !== undefined, (select) =>
      select.where((row) => row(row.refTuple('created_at', 'id'), '<=', row.tuple(upTo!.createdAt, upTo!.id))),
    )
    .orderBy('created_at')
    .orderBy('id');
}

/** The condition of a filter. Of a status it is what a key's own row says: see `selectIdsOfStatus`. */
export function matching(
  row: KeyColumns,
  { search, rareParts, ownedBy, roles, status }: FilterInParts,
  dialect: DialectName,
) {
  const has = (column: 'roles' | 'search_text', text: string) => contains(dialect, column, text);
  const conditions: Expression<SqlBool>[] = [];
  if (search !== undefined) {
    const text = searchTextOf({ name: search, description: null });
    conditions.push(rareParts.length > 0 ? isFoundByParts(text, rareParts) : has('search_text', text));
  }
  if (roles !== undefined) conditions.push(row.or(roles.map((role) => has('roles', `"${role}"`))));
  if (status !== undefined) conditions.push(couldHaveStatus(status));
  if (ownedBy !== undefined) conditions.push(row.or([row('id', '=', ownedBy), row('created_by', '=', ownedBy)]));
  return row.and(conditions);
}

/** Whether a column contains a text literally. */
function contains(dialect: DialectName, column: string, text: string): Expression<SqlBool> {
  // SQLite's LIKE stops at a NUL and ignores case. PostgreSQL estimates the selectivity of a LIKE pattern, but not of a
  // position, for which it would scan all keys in order.
  if (dialect === 'sqlite') return sql<SqlBool>`instr(${sql.ref(column)}, ${text}) > 0`;
  return sql<SqlBool>`${sql.ref(column)} like ${`%${text.replaceAll(/[\\%_]/g, '\\$&')}%`}`;
}

/**
 * Whether PostgreSQL finds a text in a key that it finds by parts of it. Its index looks for one part after another,
 * and for no others. Planned by itself: where the sample that PostgreSQL has of a table has one key with the text, it
 * would read all keys in their order until there are enough.
 */
function isFoundByParts(text: string, parts: readonly string[]): Expression<SqlBool> {
  const hasParts = parts.map((part) => contains('postgres', 'search_text', part));
  const hasText = sql`strpos(search_text, ${text}) > 0`;
  const found = sql`select ctid from api_keys where ${sql.join([...hasParts, hasText], sql` and `)}`;
  return sql<SqlBool>`api_keys.ctid = any(array(${found}))`;
}

/**
 * Whether a key has a status, or may have it by its ancestors: they only make an active key disabled or expired, and a
 * disabled one expired.
 */
function couldHaveStatus({ is, now }: { is: Status; now: number }): RawBuilder<SqlBool> {
  const isExpired = sql`coalesce(expires_at <= ${now}, false)`;
  const own: Record<Status, RawBuilder<unknown>> = {
    ACTIVE: sql`not ${isExpired} and disabled_at is null`,
    DISABLED: sql`not ${isExpired} and (disabled_at is not null or created_by is not null)`,
    EXPIRED: sql`(${isExpired} or created_by is not null)`,
  };
  return sql<SqlBool>`(${own[is]})`;
}

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
    expiresAt: toNumber(row.expires_at),
    disabledAt: toNumber(row.disabled_at),
  };
}
