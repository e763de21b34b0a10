import type { AuditReader, AuditWriter } from '../audit/index.ts';
import type { ErrorCode, ReadPorts, WritePorts } from '../basics/index.ts';
import type { ApiKey, FilterValues, RotatedSecret, Status, StoredKey } from '../key/index.ts';
import type { Role } from '../permissions/index.ts';
import type { Follower, Following } from './feed.ts';

/** The position in the list after which a page starts. Keys are listed by time of creation, then id. */
export interface ListPosition {
  /** Milliseconds since 1970. */
  createdAt: number;
  /** The id of the key at this position. */
  id: string;
}

/** Selects keys. The fields that are filters: see `filterFields`. */
export interface KeyFilter extends FilterValues {
  /** A part of the name or description, case-insensitive. */
  search?: string | undefined;
  /** Only the key with this id, and the keys that it created. */
  ownedBy?: string | undefined;
  /** Only those that the key with this id created; null for those that the operator did. */
  createdBy?: string | null | undefined;
  /** Only those that expire after the first time and, at the latest, at the second one. */
  expires?: { readonly after: number; readonly until: number } | undefined;
  /** Only those that were neither created nor accepted since a time, in milliseconds since 1970. */
  unusedSince?: number | undefined;
  /** Only those that were never accepted. */
  neverUsed?: true | undefined;
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
  replace(changes: readonly { before: StoredKey; after: StoredKey }[]): Promise<void>;
  /** Deletes keys in this order: each before the key that created it. */
  delete(ids: readonly string[]): Promise<void>;
  /** Remembers whose these secrets were, until the key is deleted or the audit log is pruned beyond that time. */
  addRotatedSecrets(secrets: readonly RotatedSecret[]): Promise<void>;
}

/** How a transaction is made. */
export interface RepositoryWriteOptions {
  /** Whether it revokes access: then it may use room that the store keeps for a full disk. */
  revokes?: boolean | undefined;
  /**
   * Whether it only counts what is not read to change keys: then no change of a key waits for it in PostgreSQL, and for
   * a file only while it is made.
   */
  counts?: boolean | undefined;
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

/** What is known of the changes of others, in parts. It can be sent to another process of the machine. */
export interface Received {
  /** The ids of keys that were changed; `any` if it is not known which. */
  readonly changed?: readonly string[] | 'any';
  /**
   * Nothing is missing that was changed before the store was asked: when that was, in milliseconds of the clock of the
   * machine that is never set. Null: that is not sure any more.
   */
  readonly alive?: { readonly askedAt: number } | null;
  /** Why nothing arrives. */
  readonly problem?: { readonly code: ErrorCode; readonly message: string; readonly isSilence: boolean };
  /** Whether connections that were made before may lead to a server that was replaced. */
  readonly renewsPool?: boolean;
  /** The number of the last change that is known of once this is taken. Whoever made that may wait for it. */
  readonly change?: number;
}

/** What tells of changes of keys. */
export interface ChangeSource {
  /** Begins to listen. @param hear resolves once what it was told is taken, if not at once */
  start(hear: (received: Received) => void | Promise<void>): void;
  /** Is told each time that somebody relies on what was received: it is made sure less often while nobody does. */
  asked(): void;
  /** Is told that this process tells others: should it end, they go on for as long as what it knew was trusted. */
  followed?(): void;
  /** Resolves once nobody waits for it any more. */
  close(): Promise<void>;
}

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
  /** All keys, page by page, in the order in which they are read fastest. */
  pages(limit: number): AsyncIterable<ApiKey[]>;
  /** A page of keys, by time of creation, then id. */
  list(query: ListQuery): Promise<ApiKey[]>;
  /** A page of the keys that one of these keys created or, given null, that no key created. */
  listCreatedBy(creators: readonly string[] | null, page: Pick<ListQuery, 'limit' | 'after'>): Promise<StoredKey[]>;
  /** Counts the keys at a time in milliseconds since 1970: in slices, as it reads through all of them. */
  count(now: number): Promise<KeyCounts>;
  /** The audit log. */
  readonly auditLog: AuditReader;
  /**
   * A number that grows with each change or deletion of a key, in whatever process, and not when only activity is
   * recorded. A file is looked at once a millisecond at most, and a change returns a millisecond after its commit; a
   * database server sends notifications. Undefined while it cannot be told without waiting.
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
  /** Whether searches of keys go by an index. Without it, PostgreSQL reads through the keys. */
  hasSearchIndex(): Promise<boolean>;
  /**
   * Calls back when notifications of the changes of other processes are lost, and when they arrive again. Meanwhile
   * there is no revision. A file is looked at instead, and is never reported.
   */
  watchHearing(report: NotificationReport): void;
  /** Lets changes, whoever makes them, wait for somebody who tells them on. @throws KeysError STORE_… */
  follow(follower: Follower): Promise<Following>;
}
