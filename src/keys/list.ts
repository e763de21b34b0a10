import { suggestion } from './nearest.ts';
import type { ApiKey } from './key/api-key.ts';
import type { Catalog, Role } from './permissions/catalog.ts';
import { KeysError, assertValid } from './errors.ts';
import { parseRoles } from './permissions/grants.ts';
import { type Actor, OPERATOR, uses } from './authorization/principal.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from './page.ts';
import type { KeyRepository, ListPosition } from './repository.ts';
import { type Status, STATUSES } from './key/status.ts';
import { anyText, anything, checkOptions, list, orNull, type Rules } from './options.ts';
import { formatList, printable, checkSearchText } from './text.ts';

/** Which keys to list. */
export interface PageQuery {
  /** The maximum number of keys, up to 500. Default: 50. */
  first?: number | null;
  /** The cursor of the key after which the page starts. */
  after?: string | null;
  /** A part of the name or description, case-insensitive. */
  search?: string | null;
  /** Only keys with one of these roles, case-insensitive. */
  roles?: readonly string[] | null;
  /** Only keys of this status, case-insensitive. */
  status?: string | null;
}

const PAGE_OPTIONS: Rules<PageQuery> = {
  first: anything,
  after: orNull(anyText),
  search: orNull(anyText),
  roles: orNull(list(anyText)),
  status: orNull(anyText),
};

/** A page of keys, oldest first. */
export interface Page {
  /** The keys. */
  keys: ApiKey[];
  /** Whether more keys follow. */
  hasNextPage: boolean;
}

/** What a list depends on besides the query. */
export interface ListContext {
  catalog: Catalog;
  /** Milliseconds since 1970. */
  now: number;
}

/**
 * Lists the keys that the actor may read: all of them, or its own.
 * @throws ValidationError; KeysError OPTION_INVALID, INPUT_INVALID
 */
export async function listKeys(
  repository: KeyRepository,
  query: PageQuery,
  actor: Actor,
  { catalog, now }: ListContext,
): Promise<Page> {
  checkOptions('keys.list', query, PAGE_OPTIONS);
  const first = query.first ?? DEFAULT_PAGE_SIZE;
  if (!Number.isInteger(first) || first < 0 || first > MAX_PAGE_SIZE) {
    throw new KeysError('INPUT_INVALID', `"first" is ${first}; a page has 0 to ${MAX_PAGE_SIZE} keys.`);
  }
  checkSearchText(query.search ?? '');
  const keys = await repository.list({
    limit: first + 1,
    after: query.after ? readCursor(query.after) : undefined,
    search: query.search || undefined,
    ownedBy: ownedBy(actor),
    roles: query.roles ? readRoles(query.roles, catalog) : undefined,
    status: query.status == null ? undefined : { is: readStatus(query.status), now },
  });
  return { keys: keys.slice(0, first), hasNextPage: keys.length > first };
}

/** The cursor of a key: opaque to clients, and good also after the key is gone. */
export function formatCursor(key: Pick<ApiKey, 'id' | 'createdAt'>): string {
  return Buffer.from(`${key.createdAt}:${key.id}`).toString('base64url');
}

/** Whether a text has the form of a cursor. */
export function isCursor(text: string): boolean {
  return positionOf(text) !== undefined;
}

function positionOf(cursor: string): ListPosition | undefined {
  const match = /^(\d{1,15}):([0-9a-f-]{36})$/.exec(Buffer.from(cursor, 'base64url').toString());
  return match ? { createdAt: Number(match[1]), id: match[2]! } : undefined;
}

function readCursor(cursor: string): ListPosition {
  const position = positionOf(cursor);
  if (position) return position;
  throw new KeysError('INPUT_INVALID', '"after" is not a cursor of this list. Use an endCursor that it returned.');
}

/** Parses the roles of a filter. @throws ValidationError */
export function readRoles(items: readonly string[], catalog: Catalog): Role[] {
  const { values, issues } = parseRoles(items, catalog);
  assertValid(issues);
  return values;
}

/** Parses a status. @throws KeysError INPUT_INVALID */
export function readStatus(text: string): Status {
  const status = STATUSES.find((name) => name === text.trim().toUpperCase());
  if (!status)
    throw new KeysError(
      'INPUT_INVALID',
      `"${printable(text)}" is not a status. ${suggestion(text.trim(), STATUSES)}` +
        `The statuses are ${formatList(STATUSES)}.`,
    );
  return status;
}

function ownedBy(actor: Actor): string | undefined {
  return actor === OPERATOR || uses(actor, 'API_KEY', 'READ_ANY') ? undefined : actor.apiKey.id;
}
