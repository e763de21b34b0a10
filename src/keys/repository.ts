import type { ApiKey, StoredKey } from './key/api-key.ts';
import type { AuditDraft, AuditReader } from './audit/audit-entry.ts';
import type { Permission, Role } from './permissions/catalog.ts';
import type { Status } from './key/status.ts';
import type { KeyUsage, UsageTotals } from './key/usage.ts';

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

/** How keys are found. */
export interface KeyFinder<Key extends ApiKey = ApiKey> {
  findById(id: string): Promise<Key | undefined>;
  /** By name in its normal form, compared exactly. */
  findByName(name: string): Promise<Key | undefined>;
  /** The keys that have one of these values in this field. */
  findBy(field: 'id' | 'name' | 'publicId', values: readonly string[]): Promise<Key[]>;
  /** The keys that were made from a declaration. */
  findManaged(): Promise<Key[]>;
  /** These keys, all that they created, and so on: each once, and none before the one that created it. */
  findWithDescendants(ids: readonly string[]): Promise<Key[]>;
}

/** How keys are found with what their secrets are recognised by, many at once. */
export interface StoredKeyFinder extends KeyFinder<StoredKey> {
  /** The keys of which one of these is the digest of a secret, whether it still works or not. */
  findByDigests(digests: readonly string[]): Promise<StoredKey[]>;
}

/** A transaction that writes: what it reads stays as it is until it ends. */
export interface KeyWriter extends StoredKeyFinder {
  insert(keys: readonly StoredKey[]): Promise<void>;
  update(key: StoredKey): Promise<void>;
  /** Deletes keys in this order, in which none may come before those that it created. */
  delete(ids: readonly string[]): Promise<void>;
  /** Adds to what is known of the use of keys; those that are gone are passed over. */
  addUsage(usage: readonly KeyUsage[]): Promise<void>;
  appendToAuditLog(entries: readonly AuditDraft[]): Promise<void>;
}

/** A key that was found by a secret: by its newest one, or by the one before. */
export interface FoundBySecret {
  key: ApiKey;
  secret: 'current' | 'previous';
}

/**
 * Where keys are kept. All methods reject with a `KeysError` whose code starts with `STORE_` when the store can't do
 * what is asked of it.
 */
export interface KeyRepository extends KeyFinder {
  /** The key one of whose secrets has this digest, whether that one still works or not. */
  findByDigest(digest: string): Promise<FoundBySecret | undefined>;
  list(query: ListQuery): Promise<ApiKey[]>;
  /** The keys that one of these keys created, or that none did, with what their secrets are recognised by. */
  listCreatedBy(creators: readonly string[] | null, page: Pick<ListQuery, 'limit' | 'after'>): Promise<StoredKey[]>;
  /** How much keys were used, by their ids; those that never were are left out. */
  findUsage(ids: readonly string[]): Promise<Map<string, UsageTotals>>;
  /** The grants that a key has used, with the time of the last use of each, in milliseconds since 1970. */
  findUsedPermissions(id: string): Promise<Map<Permission, number>>;
  readonly auditLog: AuditReader;
  /**
   * A number that is another one after any change of a key, by whatever process, and the same where only uses were counted:
   * in a file from the next turn of the event loop on, in a database server as soon as that has told. Nothing where it
   * can't be told without waiting.
   */
  revision(): number | undefined;
  /** Runs `work` in one transaction, which no other writer can come between; undone when it throws. */
  write<Result>(work: (writer: KeyWriter) => Promise<Result>): Promise<Result>;
  /** Resolves when the store answers. */
  check(): Promise<void>;
}
