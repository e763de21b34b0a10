import type { ApiKey, StoredKey } from './key/api-key.ts';
import type { AuditReader, AuditWriter } from './audit/audit-entry.ts';
import type { Role } from './permissions/catalog.ts';
import type { ReadPorts, WritePorts } from './port.ts';
import type { RotatedSecret } from './key/rotated-secret.ts';
import type { Status } from './key/status.ts';

/** The position in the list after which a page starts. Keys are listed by time of creation, then id. */
export interface ListPosition {
  /** Milliseconds since 1970. */
  createdAt: number;
  /** The id of the key at this position. */
  id: string;
}

/** Selects keys. */
export interface KeyFilter {
  /** A part of the name or description, case-insensitive. */
  search?: string | undefined;
  /** Only the key with this id, and the keys that it created. */
  ownedBy?: string | undefined;
  /** Only keys with one of these roles. */
  roles?: readonly Role[] | undefined;
  /** Only keys that have this status at the time `now`, in milliseconds since 1970. */
  status?: { is: Status; now: number } | undefined;
}

/** A page of keys that match a filter. */
export interface ListQuery extends KeyFilter {
  /** The maximum number of keys. */
  limit: number;
  /** Only keys after this position. */
  after?: ListPosition | undefined;
}

/** Finds keys, and what features keep beside them. */
export interface KeyFinder<Key extends ApiKey = ApiKey> extends ReadPorts {
  /** The key with this id. */
  findById(id: string): Promise<Key | undefined>;
  /** The key with this normalized name, compared exactly. */
  findByName(name: string): Promise<Key | undefined>;
  /** The keys that have one of these values in a field. */
  findBy(field: 'id' | 'name' | 'publicId', values: readonly string[]): Promise<Key[]>;
  /** The keys that have a secret with one of these digests, whether it still works or not. */
  findByDigests(digests: readonly string[]): Promise<StoredKey[]>;
  /** The keys whose names have the skeleton of one of these names: see `skeletonOf`. */
  findConfusable(names: readonly string[]): Promise<Key[]>;
  /** How many of the keys that a key created are live at a time, in milliseconds since 1970: see `statusOf`. */
  countLive(creator: string, now: number): Promise<number>;
  /** The keys that an apply created. */
  findManaged(): Promise<Key[]>;
  /** The keys with these ids, the keys that created them, and so on, by id: `MAX_CHAIN_LENGTH` generations. */
  findAncestors(ids: readonly string[]): Promise<Map<string, Key>>;
  /** These keys, those that they created, and so on: each once, after the key that created it. */
  findWithDescendants(ids: readonly string[]): Promise<Key[]>;
}

/** Finds keys with the digests of their secrets. */
export type StoredKeyFinder = KeyFinder<StoredKey>;

/** A write transaction: what it reads does not change until it ends. */
export interface KeyWriter extends StoredKeyFinder, AuditWriter, WritePorts {
  port: WritePorts['port'];
  /** Inserts keys, each after the key that created it. */
  insert(keys: readonly StoredKey[]): Promise<void>;
  /** Changes the fields of keys that differ. */
  update(changes: readonly { before: StoredKey; after: StoredKey }[]): Promise<void>;
  /** Writes keys whole in the place of those with their ids, also of damaged ones. They may exchange their names. */
  replace(keys: readonly StoredKey[]): Promise<void>;
  /** Deletes keys in this order: each before the key that created it. */
  delete(ids: readonly string[]): Promise<void>;
  /** Remembers whose these secrets were, until the key is deleted or the audit log is pruned beyond that time. */
  addRotatedSecrets(secrets: readonly RotatedSecret[]): Promise<void>;
  /** Remembers a time, in milliseconds since 1970, unless it is less than a second later than the one remembered. */
  rememberTime(now: number): Promise<void>;
}

/** A key that was found by one of its secrets. */
export interface FoundBySecret {
  /** The key. */
  key: ApiKey;
  /** Which of its secrets it was; `rotated` for one that the key no longer has. */
  secret: 'current' | 'previous' | 'rotated';
  /** The public id of that secret. */
  publicId: string;
  /** The key that created it, and so on, by id: as many as a chain may have. */
  ancestors: ReadonlyMap<string, ApiKey>;
}

/** How many keys there are. */
export interface KeyCounts {
  /** By their status, with their ancestors counted. */
  readonly counts: Readonly<Record<Status, number>>;
  /** When the next one expires of those that are active, in milliseconds since 1970; null if none does. */
  readonly nextExpiry: number | null;
}

/** Takes why notifications of changes are lost, in words for users; undefined once they arrive again. */
export type NotificationReport = (problem: Error | undefined) => void;

/** The database that a store is in. */
export type StoreKind = 'sqlite' | 'postgres';

/**
 * Where keys are kept, and what features keep beside them. All methods reject with a `KeysError` whose code starts with
 * `STORE_` if the store fails.
 */
export interface KeyRepository extends KeyFinder {
  readonly kind: StoreKind;
  /**
   * The key that has, or had, a secret with this digest, whether that secret still works or not. At once, if the store
   * can tell without waiting.
   */
  findByDigest(digest: string): FoundBySecret | undefined | Promise<FoundBySecret | undefined>;
  /** A page of keys, by time of creation, then id. */
  list(query: ListQuery): Promise<ApiKey[]>;
  /** A page of the keys that one of these keys created or, given null, that no key created. */
  listCreatedBy(creators: readonly string[] | null, page: Pick<ListQuery, 'limit' | 'after'>): Promise<StoredKey[]>;
  /** Counts the keys at a time in milliseconds since 1970: in slices, as it reads through all of them. */
  count(now: number): Promise<KeyCounts>;
  /** The audit log. */
  readonly auditLog: AuditReader;
  /** The latest time that the store remembers, in milliseconds since 1970; 0 if there is none. */
  latestTime(): Promise<number>;
  /**
   * A number that grows with each change or deletion of a key, in whatever process, and not when only activity is
   * recorded. A file is looked at once a millisecond at most, and a change returns a millisecond after its commit; a
   * database server sends notifications. Undefined while it cannot be told without waiting.
   */
  revision(): number | undefined;
  /** The ids of the keys that were changed or deleted between a revision and the present one; `any` if unknown. */
  keysChangedSince(revision: number): readonly string[] | 'any';
  /**
   * Runs `work` in one transaction, exclusive of other writers; rolled back if it throws. Work that `revokes`, takes
   * access away, may use room that the store keeps for a full disk.
   */
  write<Result>(work: (writer: KeyWriter) => Promise<Result>, options?: { revokes?: boolean }): Promise<Result>;
  /** Resolves when the store answers. */
  check(): Promise<void>;
  /** Whether searches of keys go by an index. Without it, PostgreSQL reads through the keys. */
  hasSearchIndex(): Promise<boolean>;
  /**
   * Calls back when notifications of the changes of other processes are lost, and when they arrive again. Meanwhile
   * there is no revision. A file is looked at instead, and is never reported.
   */
  watchHearing(report: NotificationReport): void;
}
