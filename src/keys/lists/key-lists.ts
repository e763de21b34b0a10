import { type Actor, OPERATOR, uses } from '../authorization/index.ts';
import {
  anyText,
  assertValid,
  checkSearchText,
  declarePort,
  formatList,
  KeysError,
  list,
  MAX_PAGE_SIZE,
  orNull,
  printable,
  readDate,
  type Rules,
  suggestion,
  yesOrNo,
} from '../basics/index.ts';
import {
  type ApiKey,
  type FieldFilters,
  filterFields,
  type FilterName,
  type FilterValues,
  isNone,
  mapFields,
  normalizeName,
  type Status,
  STATUSES,
} from '../key/index.ts';
import { type Catalog, parseRoles, type Role } from '../permissions/index.ts';
import type { KeyFilter, KeyRepository } from '../repository/index.ts';

/** Sort orders of keys. */
export const KEY_SORTS = ['CREATED', 'NAME', 'EXPIRES', 'LAST_USED'] as const;
export type KeySort = (typeof KEY_SORTS)[number];

/** The most keys in a selection. Further keys are neither counted nor sorted, so that answers stay fast. */
export const MAX_SELECTED = 10_000;
/** The largest offset, for reading all keys page by page. */
const MAX_OFFSET = 1_000_000_000;
/** The keys to select. */
export interface SelectionQuery extends KeyFilters {
  /** The size of a page, up to 500. */
  first: number;
  /** The number of keys before the page. */
  offset: number;
  sort: KeySort;
  /** True to start with the newest, the last or the latest. */
  descending: boolean;
  /** The count at which counting stops, up to `MAX_SELECTED`. */
  countUpTo?: number | null | undefined;
}

/** A selection, for the store. */
export interface KeySelection extends KeyFilter {
  readonly sort: KeySort;
  readonly descending: boolean;
  readonly offset: number;
  readonly limit: number;
  /** The most keys that are counted and sorted. */
  readonly most: number;
  /** True to read all keys for the count; otherwise, counting ends soon after the page. */
  readonly countsAll: boolean;
}

/** A page of selected keys. */
export interface SelectedKeys {
  readonly keys: readonly ApiKey[];
  /** The number of keys, as far as they were counted. */
  readonly total: number;
  /** True if there are, or could be, more. */
  readonly hasMore: boolean;
  /** False if there were too many to sort: they are in the order of creation. */
  readonly isSorted: boolean;
}

/** The keys that a key created, the keys that these created, and so on. */
export interface Branch {
  /** The number of keys. */
  readonly count: number;
  /** When one of them was last accepted, in milliseconds since 1970; null if none ever was. */
  readonly lastUsedAt: number | null;
}

/** The child keys of several keys. */
export interface Branches {
  readonly byKey: ReadonlyMap<string, Branch>;
  /** The number of keys in total, including these, each counted once. */
  readonly total: number;
}

/** Finds keys for lists. */
interface KeyListFinder {
  select(selection: KeySelection): Promise<SelectedKeys>;
  branches(ids: readonly string[]): Promise<Branches>;
}
export const KEY_LISTS = declarePort<KeyListFinder>('key lists');

interface KeyListsOptions {
  repository: KeyRepository;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  clock: () => number;
}

/** Lists of keys for people. */
export class KeyLists {
  readonly #options: KeyListsOptions;

  constructor(options: KeyListsOptions) {
    this.#options = options;
  }

  /**
   * A page of the keys that the actor can read (all keys, or its own), with their number.
   * @throws ValidationError; KeysError INPUT_INVALID, STORE_…
   */
  async select(query: SelectionQuery, actor: Actor): Promise<SelectedKeys> {
    const { repository, catalog, clock } = this.#options;
    const { first, offset, sort, descending, countUpTo } = query;
    requireNumber('first', first, MAX_PAGE_SIZE);
    requireNumber('offset', offset, MAX_OFFSET);
    requireNumber('countUpTo', countUpTo ?? MAX_SELECTED, MAX_SELECTED);
    const { roles } = query;
    const filters = { ...query, roles: roles && roles.length > 0 ? roles : undefined };
    return repository.port(KEY_LISTS).select({
      ...readFilters(filters, actor, { catalog, now: clock() }),
      sort,
      descending,
      offset,
      limit: first,
      most: countUpTo ?? MAX_SELECTED,
      // The operator's own command can wait for a full count.
      countsAll: actor === OPERATOR,
    });
  }

  /** The child keys of keys, completely counted. @throws KeysError STORE_… */
  branchesOf(ids: readonly string[]): Promise<Branches> {
    return this.#options.repository.port(KEY_LISTS).branches(ids);
  }
}

function requireNumber(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 0 && value <= most) return;
  throw new KeysError('INPUT_INVALID', `"${name}" is ${value}; it can be 0 to ${most}.`);
}

/** Filters of keys. A key must match all that are given. */
export interface KeyFilters extends FieldFilters {
  /** A part of the name or description, case-insensitive. */
  search?: string | null;
  /** Only keys with one of these roles, case-insensitive. */
  roles?: readonly string[] | null;
  /** Only keys of this status, case-insensitive. */
  status?: string | null;
  /** The id of the key that created them; empty for the operator's keys. */
  createdBy?: string | null;
  /** Only keys that have not expired and will by this time, an RFC 3339 date and time. */
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
  ...mapFields(filterFields, ({ rule }) => orNull(rule)),
  createdBy: orNull(anyText),
  expiresBefore: orNull(anyText),
  unusedSince: orNull(anyText),
  neverUsed: orNull(yesOrNo),
};

/**
 * Parses filters, for an actor who can read all keys, or only its own.
 * @param now milliseconds since 1970
 * @throws ValidationError; KeysError INPUT_INVALID
 */
export function readFilters(
  filters: KeyFilters,
  actor: Actor,
  { catalog, now }: { catalog: Catalog; now: number },
): KeyFilter {
  const { search, roles, status, createdBy, expiresBefore, unusedSince, neverUsed } = filters;
  for (const text of [search, createdBy]) checkSearchText(text ?? '');
  return {
    search: search || undefined,
    roles: roles && roles.length > 0 ? readRoles(roles, catalog) : undefined,
    status: status == null ? undefined : { is: readStatus(status), now },
    ownedBy: actor === OPERATOR || uses(actor, 'API_KEY', 'READ_ANY') ? undefined : actor.apiKey.id,
    ...readFieldFilters(filters),
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

/**
 * Parses the filters of fields. A blank text, or a list of blank texts, selects no key.
 * @throws ValidationError; KeysError INPUT_INVALID
 */
export function readFieldFilters(filters: FieldFilters): FilterValues {
  return mapFields(filterFields, (field, name) => {
    const given = filters[name as FilterName];
    if (given == null || (Array.isArray(given) && given.length === 0)) return undefined;
    // The owner filter also matches names of keys and identities: see `labelFields`.
    if (name === 'owner') return readOwner(filters.owner!);
    assertValid(field.validate(given));
    return isNone(field.read(given)) ? '' : field.read(given);
  });
}

/** @throws KeysError INPUT_INVALID */
function readOwner(text: string): string {
  checkSearchText(text);
  return normalizeName(text);
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
