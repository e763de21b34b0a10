import type { ApiKey, StoredKey } from './api-key.ts';
import type { Role } from './catalog.ts';
import type { Status } from './status.ts';

/** The place in the list after which a page starts: keys are listed by time of creation, then id. */
export interface ListPosition {
  createdAt: number;
  id: string;
}

/** Which keys are meant. */
export interface KeyFilter {
  /** A part of the name or the description, whatever its case. */
  search?: string | undefined;
  /** Only this key and those that it created. */
  ownedBy?: string | undefined;
  /** Only keys with one of these roles. */
  roles?: readonly Role[] | undefined;
  /** Only keys that have this status at the time `now`, in milliseconds since 1970. */
  status?: { is: Status; now: number } | undefined;
}

export interface ListQuery extends KeyFilter {
  /** How many keys at most. */
  limit: number;
  after?: ListPosition | undefined;
}

/** What can be asked of the stored keys. */
export interface KeyReader {
  findById(id: string): Promise<ApiKey | undefined>;
  /** By name in its normal form, compared exactly. */
  findByName(name: string): Promise<ApiKey | undefined>;
  /** These keys, all that they created, and so on: each once, and none before the one that created it. */
  findWithDescendants(ids: readonly string[]): Promise<StoredKey[]>;
}

/** A transaction that writes: what it reads stays as it is until it ends. */
export interface KeyWriter extends KeyReader {
  insert(keys: readonly StoredKey[]): Promise<void>;
  update(key: ApiKey): Promise<void>;
  delete(ids: readonly string[]): Promise<void>;
}

/**
 * Where keys are kept. All methods reject with a `KeysError` whose code starts with `STORE_` when the store can't do
 * what is asked of it.
 */
export interface KeyRepository extends KeyReader {
  /** The key whose secret has this digest. */
  findByDigest(digest: string): Promise<ApiKey | undefined>;
  list(query: ListQuery): Promise<ApiKey[]>;
  count(query: KeyFilter): Promise<number>;
  /** Runs `work` in one transaction, which no other writer can come between; undone when it throws. */
  write<Result>(work: (writer: KeyWriter) => Promise<Result>): Promise<Result>;
  /** Resolves when the store answers. */
  check(): Promise<void>;
}
