import { type Actor, OPERATOR, uses } from '../authorization/index.ts';
import {
  anyText,
  assertValid,
  checkSearchText,
  formatList,
  KeysError,
  list,
  orNull,
  printable,
  readDate,
  type Rules,
  suggestion,
  yesOrNo,
} from '../basics/index.ts';
import { normalizeName, parseTags, type Status, STATUSES } from '../key/index.ts';
import { type Catalog, parseRoles, type Role } from '../permissions/index.ts';
import type { KeyFilter } from '../repository/index.ts';

/** By what keys are selected: those that fulfil all that is given. */
export interface KeyFilters {
  /** A part of the name or description, case-insensitive. */
  search?: string | null;
  /** Only keys with one of these roles, case-insensitive. */
  roles?: readonly string[] | null;
  /** Only keys of this status, case-insensitive. */
  status?: string | null;
  /**
   * Only keys that answer to somebody, case-insensitive: those with this owner, the key or person of this name, and the
   * keys that these created, that those created, and so on. For a person, also what they are called where they sign in.
   */
  owner?: string | null;
  /** Only keys with all these tags, each as `key=value`. */
  tags?: readonly string[] | null;
  /** The id of the key that created them; empty for those that the operator created. */
  createdBy?: string | null;
  /** Only keys that are to expire until this time, an RFC 3339 date and time, and have not yet. */
  expiresBefore?: string | null;
  /** Only keys that were neither created nor accepted since this time, an RFC 3339 date and time. */
  unusedSince?: string | null;
  /** Only keys that were never accepted. */
  neverUsed?: boolean | null;
}

export const KEY_FILTERS: Rules<KeyFilters> = {
  search: orNull(anyText),
  roles: orNull(list(anyText)),
  status: orNull(anyText),
  owner: orNull(anyText),
  tags: orNull(list(anyText)),
  createdBy: orNull(anyText),
  expiresBefore: orNull(anyText),
  unusedSince: orNull(anyText),
  neverUsed: orNull(yesOrNo),
};

/**
 * Parses filters, for what an actor may read: all keys, or its own.
 * @param now milliseconds since 1970
 * @throws ValidationError; KeysError INPUT_INVALID
 */
export function readFilters(
  filters: KeyFilters,
  actor: Actor,
  { catalog, now }: { catalog: Catalog; now: number },
): KeyFilter {
  const { search, roles, status, owner, tags, createdBy, expiresBefore, unusedSince, neverUsed } = filters;
  for (const text of [search, owner, createdBy]) checkSearchText(text ?? '');
  return {
    search: search || undefined,
    roles: roles ? readRoles(roles, catalog) : undefined,
    status: status == null ? undefined : { is: readStatus(status), now },
    ownedBy: actor === OPERATOR || uses(actor, 'API_KEY', 'READ_ANY') ? undefined : actor.apiKey.id,
    owner: owner == null ? undefined : normalizeName(owner),
    tags: tags && tags.length > 0 ? readTags(tags) : undefined,
    createdBy: createdBy === '' ? null : (createdBy ?? undefined),
    expires: expiresBefore == null ? undefined : { after: now, until: readTime(expiresBefore) },
    unusedSince: unusedSince == null ? undefined : readTime(unusedSince),
    neverUsed: neverUsed || undefined,
  };
}

/** Parses the roles of a filter. @throws ValidationError */
export function readRoles(items: readonly string[], catalog: Catalog): Role[] {
  const { values, issues } = parseRoles(items, catalog);
  assertValid(issues);
  return values;
}

/** Parses the tags of a filter. @throws ValidationError */
export function readTags(items: readonly string[]): string[] {
  const { values, issues } = parseTags(items);
  assertValid(issues);
  return values;
}

/** @throws KeysError INPUT_INVALID */
function readTime(text: string): number {
  const time = readDate(text);
  if (time !== undefined) return time;
  throw new KeysError('INPUT_INVALID', `"${printable(text)}" is not an RFC 3339 date and time.`);
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
