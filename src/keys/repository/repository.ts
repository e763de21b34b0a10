import type { AuditReader, AuditWriter } from '../audit/index.ts';
import type { ErrorCode, ReadPorts, WritePorts } from '../basics/index.ts';
import type { ApiKey, FilterValues, RotatedSecret, Status, StoredKey } from '../key/index.ts';
import type { Role } from '../permissions/index.ts';
import type { Follower, Following } from './followers.ts';

/** The position in the list after which a page starts. Keys are listed by time of creation, then id. */
export interface ListPosition {
  /** Milliseconds since 1970. */
  createdAt: number;
  /** The id of the key at this position. */
  id: string;
}

/** A filter of keys, with the fields of `filterFields`. */
export interface KeyFilter extends FilterValues {
  /** A part of the name or description, case-insensitive. */
  search?: string | undefined;
  /** Only the key with this id, and the keys that it created. */
  ownedBy?: string | undefined;
  /** Only keys created by the key with this id; null for keys of the operator. */
  createdBy?: string | null | undefined;
  /** Only keys that expire after the first time, and no later than the second. */
  expires?: { readonly after: number; readonly until: number } | undefined;
  /** Only keys that were neither created nor accepted since a time, in milliseconds since 1970. */
  unusedSince?: number | undefined;
  /** Only keys that were never accepted. */
  neverUsed?: true | undefined;
  /** Only keys with one of these roles. */
  roles?: readonly Role[] | undefined;
  /** Only keys with this status at the time `now`, in milliseconds since 1970. */
  status?: { is: Status; now: number } | undefined;
}

/** A page of keys that match a filter. */
export interface ListQuery extends KeyFilter {
  /** The maximum number of keys. */
  limit: number;
  /** Only keys after this position. */
  after?: ListPosition | undefined;
}

/** Finds keys, and data of features. */
export interface KeyFinder<Key extends ApiKey = ApiKey> extends ReadPorts {
  /** The key with this id. */
  findById(id: string): Promise<Key | undefined>;
  /** The key with this normalized name, compared exactly. */
  findByName(name: string): Promise<Key | undefined>;
  /** The keys that have one of these values in a field. */
  findBy(field: 'id' | 'name' | 'publicId', values: readonly string[]): Promise<Key[]>;
  /** The keys that have, or had, a secret with one of these digests. */
  findByDigests(digests: readonly string[]): Promise<StoredKey[]>;
  /** The keys whose names look like one of these, by their skeletons. */
  findConfusable(names: readonly string[]): Promise<Key[]>;
  /** How many of the keys that a key created are live at a time, in milliseconds since 1970: see `statusOf`. */
  countLive(creator: string, now: number): Promise<number>;
  /** The keys that `apply` created. */
  findManaged(): Promise<Key[]>;
  /** The keys with these ids, the keys that created them, and so on, by id: `MAX_CHAIN_LENGTH` generations. */
  findAncestors(ids: readonly string[]): Promise<Map<string, Key>>;
  /** These keys, their child keys, and so on: each once, after the key that created it. */
  findWithDescendants(ids: readonly string[]): Promise<Key[]>;
}

/** Finds keys with the digests of their secrets. */
export type StoredKeyFinder = KeyFinder<StoredKey>;

/** A write transaction. What it reads cannot change until it ends. */
export interface KeyWriter extends StoredKeyFinder, AuditWriter, WritePorts {
  port: WritePorts['port'];
  /** Inserts keys, each after the key that created it. */
  insert(keys: readonly StoredKey[]): Promise<void>;
  /** Writes the fields that differ. */
  update(changes: readonly { before: StoredKey; after: StoredKey }[]): Promise<void>;
  /** Writes whole keys over those with the same ids, even damaged ones. They can swap names. */
  replace(changes: readonly { before: StoredKey; after: StoredKey }[]): Promise<void>;
  /** Deletes keys in this order: each before the key that created it. */
  delete(ids: readonly string[]): Promise<void>;
  /** Records former secrets, until their key is deleted or the audit log is pruned beyond that time. */
  addRotatedSecrets(secrets: readonly RotatedSecret[]): Promise<void>;
}

/** Options of a transaction. */
export interface RepositoryWriteOptions {
  /** True if it revokes access: then it can use the space that the store reserves for a full disk. */
  revokes?: boolean | undefined;
  /**
   * True if it only writes counts that no change of a key depends on: then changes of keys do not wait for it in
   * PostgreSQL, and in a file only while it runs.
   */
  counts?: boolean | undefined;
}

/** A key that was found by one of its secrets. */
export interface FoundBySecret {
  /** The key. */
  key: ApiKey;
  /** Which of its secrets was found; `rotated` for a former one. */
  secret: 'current' | 'previous' | 'rotated';
  /** The public id of that secret. */
  publicId: string;
  /** The keys above it, by id, up to the length of a chain. */
  ancestors: ReadonlyMap<string, ApiKey>;
}

/** The number of keys. */
export interface KeyCounts {
  /** By status, which counts ancestors. */
  readonly counts: Readonly<Record<Status, number>>;
  /** When the next active key expires, in milliseconds since 1970; null if none does. */
  readonly nextExpiry: number | null;
}

/**
 * Called with the reason, in words for users, when notifications of changes are lost; with undefined once they arrive
 * again.
 */
export type NotificationReport = (problem: Error | undefined) => void;

/** News of changes by other processes, in parts. It can be sent to another process of the machine. */
export interface Received {
  /** The ids of changed keys; `any` if unknown. */
  readonly changed?: readonly string[] | 'any';
  /**
   * The time up to which no change is missing, when the store was asked, by the machine's monotonic clock in
   * milliseconds. Null: that is no longer certain.
   */
  readonly alive?: { readonly askedAt: number } | null;
  /** Why no news arrives. */
  readonly problem?: { readonly code: ErrorCode; readonly message: string; readonly isSilence: boolean };
  /** True if earlier connections may lead to a server that was replaced. */
  readonly renewsPool?: boolean;
  /** The number of the last change known once this is processed. The process that made it may be waiting for it. */
  readonly change?: number;
}

/** A source of changes of keys. */
export interface ChangeSource {
  /** Starts listening. @param hear returns a promise if processing the news takes time */
  start(hear: (received: Received) => void | Promise<void>): void;
  /** Called whenever received news is relied on; freshness is checked less often otherwise. */
  asked(): void;
  /** Called when this process has followers: if it crashes, they continue for as long as its knowledge was trusted. */
  followed?(): void;
  /** Resolves once no change waits for it. */
  close(): Promise<void>;
}

/** The database that a store is in. */
export type StoreKind = 'sqlite' | 'postgres';

/**
 * A store of keys and data of features. All methods reject with a `KeysError` whose code starts with `STORE_` if the
 * store fails.
 */
export interface KeyRepository extends KeyFinder {
  readonly kind: StoreKind;
  /** The key that has, or had, a secret with this digest; at once, if the store can answer without waiting. */
  findByDigest(digest: string): FoundBySecret | undefined | Promise<FoundBySecret | undefined>;
  /** All keys, page by page, in the order that is fastest to read. */
  pages(limit: number): AsyncIterable<ApiKey[]>;
  /** A page of keys, by time of creation, then id. */
  list(query: ListQuery): Promise<ApiKey[]>;
  /** A page of the keys that one of these keys created or, given null, that no key created. */
  listCreatedBy(creators: readonly string[] | null, page: Pick<ListQuery, 'limit' | 'after'>): Promise<StoredKey[]>;
  /** Counts the keys at a time in milliseconds since 1970, in slices, since it reads all of them. */
  count(now: number): Promise<KeyCounts>;
  /** The audit log. */
  readonly auditLog: AuditReader;
  /**
   * A number that grows with each change or deletion of a key in any process, but not with recorded activity. A file is
   * checked at most once a millisecond, and a change returns a millisecond after its commit; a database server sends
   * notifications. Undefined while it cannot be known without waiting.
   */
  revision(): number | undefined;
  /** The ids of the keys that were changed or deleted between a revision and the present one; `any` if unknown. */
  keysChangedSince(revision: number): readonly string[] | 'any';
  /**
   * Runs `work` in one transaction, exclusive of other writers; rolled back if it throws.
   * @throws KeysError STORE_…
   */
  write<Result>(work: (writer: KeyWriter) => Promise<Result>, options?: RepositoryWriteOptions): Promise<Result>;
  /** Resolves when the store answers. */
  check(): Promise<void>;
  /**
   * Calls back when notifications of other processes' changes are lost, with each new reason, and when they arrive again.
   * In between there is no revision. A file needs no notifications, so it never calls back.
   */
  watchHearing(report: NotificationReport): void;
  /** Lets all changes wait for a follower that passes them on. @throws KeysError STORE_… */
  follow(follower: Follower): Promise<Following>;
}
