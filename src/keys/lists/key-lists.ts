import { type Actor, OPERATOR } from '../authorization/index.ts';
import { declarePort, KeysError, MAX_PAGE_SIZE } from '../basics/index.ts';
import type { ApiKey } from '../key/index.ts';
import type { Catalog } from '../permissions/index.ts';
import type { KeyFilter, KeyRepository } from '../repository/index.ts';
import { type KeyFilters, readFilters } from './filters.ts';

/** By what keys can be sorted. */
export const KEY_SORTS = ['CREATED', 'NAME', 'EXPIRES', 'LAST_USED'] as const;
export type KeySort = (typeof KEY_SORTS)[number];

/** How many keys a selection has at most. What is more is neither counted nor sorted, so that nobody waits for it. */
export const MAX_SELECTED = 10_000;
/** Who looks through all keys, page by page, comes this far. */
const MAX_OFFSET = 1_000_000_000;
/**
 * How long keys are looked through for a page, and to count alone, in milliseconds: then it has what was found. The
 * operator, who asks for it alone, waits for all.
 */
const LOOKING_MS = { page: 100, count: 25 } as const;

/** Which keys to select. */
export interface SelectionQuery extends KeyFilters {
  /** How many keys there are on a page, up to 500. */
  first: number;
  /** How many are before the page. */
  offset: number;
  sort: KeySort;
  /** Whether the newest, the last or the latest comes first. */
  descending: boolean;
  /** After how many it is enough to know that there are more, up to `MAX_SELECTED`. */
  countUpTo?: number | null | undefined;
}

/** What the store selects. */
export interface KeySelection extends KeyFilter {
  readonly sort: KeySort;
  readonly descending: boolean;
  readonly offset: number;
  readonly limit: number;
  /** How many are counted, and sorted, at most. */
  readonly most: number;
  /** How long they are looked for, in milliseconds, unless the page is not full yet. */
  readonly lookingMs: number;
}

/** A page of the keys that were selected. */
export interface SelectedKeys {
  readonly keys: readonly ApiKey[];
  /** How many there are, as far as they were counted. */
  readonly total: number;
  /** Whether there are, or may be, more than that. */
  readonly hasMore: boolean;
  /** Whether they are sorted as was asked for; otherwise, there are too many, and they are sorted by their creation. */
  readonly isSorted: boolean;
}

/** The keys that a key created, those that these created, and so on. */
export interface Branch {
  /** How many they are. */
  readonly count: number;
  /** When one of them was last accepted, in milliseconds since 1970; null if none ever was. */
  readonly lastUsedAt: number | null;
}

/** What descends from several keys. */
export interface Branches {
  readonly byKey: ReadonlyMap<string, Branch>;
  /** How many keys there are in all, these included: each is counted once. */
  readonly total: number;
}

/** Finds keys as people look through them. */
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

/** Keys as people look through them. */
export class KeyLists {
  readonly #options: KeyListsOptions;

  constructor(options: KeyListsOptions) {
    this.#options = options;
  }

  /**
   * A page of the keys that the actor may read, with how many there are: all of them, or its own.
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
      lookingMs: actor === OPERATOR ? Number.POSITIVE_INFINITY : LOOKING_MS[first > 0 ? 'page' : 'count'],
    });
  }

  /** What descends from keys, all of it counted. @throws KeysError STORE_… */
  branchesOf(ids: readonly string[]): Promise<Branches> {
    return this.#options.repository.port(KEY_LISTS).branches(ids);
  }
}

function requireNumber(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 0 && value <= most) return;
  throw new KeysError('INPUT_INVALID', `"${name}" is ${value}; it can be 0 to ${most}.`);
}
