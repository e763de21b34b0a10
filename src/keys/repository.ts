import type { ApiKey, StoredKey } from './key/api-key.ts';
import type { AuditDraft, AuditReader, AuditWriter } from './audit/audit-entry.ts';
import type { Role } from './permissions/catalog.ts';
import type { ProgressReport } from './progress.ts';
import type { RotatedSecret } from './key/rotated-secret.ts';
import type { ConsentRequest } from './requests/consent-request.ts';
import type { EffectFinder, EffectWriter } from './effect.ts';
import type { SessionFinder, SessionWriter } from './session.ts';
import type { Status } from './key/status.ts';
import type { KeyUsage, UsageTotals, UsedGrant } from './key/usage.ts';
import type { PeriodUsage, UsageRange } from './usage/periods.ts';

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

/** Finds keys. */
export interface KeyFinder<Key extends ApiKey = ApiKey> {
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
  /**
   * Those of these keys that were used since a time, in milliseconds since 1970, or created, imported, enabled, given
   * another secret or brought back; or above a key of which that is so.
   */
  findInUse(ids: readonly string[], since: number): Promise<Set<string>>;
  /** The keys that an apply created. */
  findManaged(): Promise<Key[]>;
  /** The keys with these ids, the keys that created them, and so on, by id: `MAX_CHAIN_LENGTH` generations. */
  findAncestors(ids: readonly string[]): Promise<Map<string, Key>>;
  /** These keys, those that they created, and so on: each once, after the key that created it. */
  findWithDescendants(ids: readonly string[]): Promise<Key[]>;
}

/** Finds keys with the digests of their secrets. */
export type StoredKeyFinder = KeyFinder<StoredKey>;

/** What the audit log says of each key of a batch. */
export type BatchEntry = Pick<AuditDraft, 'at' | 'actor' | 'action'>;

/** Keys that are kept apart, to be inserted together. */
export interface StagedKeys {
  /** A random id. */
  readonly batch: string;
  readonly keys: readonly StoredKey[];
  readonly entry: BatchEntry;
  /** The hashes of their entries, if these follow the one with the hash `previous`. */
  readonly chain: { readonly previous: string; readonly hashes: readonly string[] };
}

/** How far a key has used up its limit of a unit, as the store keeps it. */
export interface SpentLimit {
  readonly unit: string;
  readonly count: number;
  /** In microseconds since 1970. */
  readonly unusedAt: number;
  readonly leases: string;
}

/** The digests that requests of applications are found by. */
export type ConsentDigest = 'handleDigest' | 'codeDigest';

/** Finds requests of applications for keys, also those that have ended and are still kept. */
export interface ConsentFinder {
  find(by: 'id' | ConsentDigest, value: string): Promise<ConsentRequest | undefined>;
  /** Those that are open at a time, in milliseconds since 1970, oldest first. */
  listOpen(now: number, limit: number): Promise<ConsentRequest[]>;
  /** The application that was given a key; undefined for a key that no application has asked for. */
  clientOf(keyId: string): Promise<string | undefined>;
}

/** What there is of requests that have not ended. */
export interface RecentRequests {
  all: number;
  ofNetwork: number;
  /** The source of each to which nobody has agreed, see `sourceOf`. */
  held: string[];
}

/** Changes requests of applications for keys, in a transaction. */
export interface ConsentWriter extends ConsentFinder {
  /** Those that have not ended at a time, in milliseconds since 1970, whatever became of them. */
  recent(now: number, network: string): Promise<RecentRequests>;
  /** Removes the oldest one of a source to which nobody has agreed. */
  removeOldest(now: number, source: string): Promise<void>;
  insert(request: ConsentRequest): Promise<void>;
  update(request: ConsentRequest): Promise<void>;
  /** The applications of those of the keys that one was given, by the ids of the keys. */
  clientsOf(keyIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Remembers which application was given a key, until that is deleted. */
  rememberClient(keyId: string, clientId: string): Promise<void>;
  /** Lets used requests that gave one key have given another, which takes its place. */
  replaceGivenKey(from: string, to: string): Promise<void>;
  /** Forgets those that ended before these times, in milliseconds since 1970. */
  forget(before: { used: number; unused: number }): Promise<void>;
}

/** What is kept of the use of keys. Times are milliseconds since 1970, the starts of days. */
export interface UsageBounds {
  /** Earlier hours become days. */
  hoursFrom: number;
  /** Earlier days are removed. */
  daysFrom: number;
  /** How many hours, and how many days, may be dealt with at once. */
  rows: number;
}

/** A write transaction: what it reads does not change until it ends. */
export interface KeyWriter extends StoredKeyFinder, AuditWriter {
  readonly consents: ConsentWriter;
  readonly sessions: SessionWriter;
  readonly effects: EffectWriter;
  /** Inserts keys, each after the key that created it. */
  insert(keys: readonly StoredKey[]): Promise<void>;
  /**
   * Inserts staged keys, each with its entry in the audit log.
   * @returns false, with nothing done, where they are no longer there: another import has cleared them
   */
  insertStaged(staged: StagedKeys): Promise<boolean>;
  /** Changes the fields of keys that differ. */
  update(changes: readonly { before: StoredKey; after: StoredKey }[]): Promise<void>;
  /** Writes keys whole in the place of those with their ids, also of damaged ones. They may exchange their names. */
  replace(keys: readonly StoredKey[]): Promise<void>;
  /** Deletes keys in this order: each before the key that created it. */
  delete(ids: readonly string[]): Promise<void>;
  /** Adds to the totals of keys; keys that no longer exist are ignored. */
  addUsage(usage: readonly KeyUsage[]): Promise<void>;
  /** Brings what is kept of the use of keys nearer to its bounds. @returns whether it is within them */
  condenseUsage(bounds: UsageBounds): Promise<boolean>;
  /** Remembers whose these secrets were, until the key is deleted or the audit log is pruned beyond that time. */
  addRotatedSecrets(secrets: readonly RotatedSecret[]): Promise<void>;
  /** How far a key has used up its limits. */
  findSpentLimits(id: string): Promise<SpentLimit[]>;
  /** Lets a new key have used up so much of its limits. */
  insertSpentLimits(id: string, spent: readonly SpentLimit[]): Promise<void>;
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

/** Takes why the changes of other processes are not heard, in words for users; undefined once they are heard again. */
export type HearingReport = (problem: Error | undefined) => void;

/** The database that a store is in. */
export type StoreKind = 'sqlite' | 'postgres';

/**
 * Where keys are kept. All methods reject with a `KeysError` whose code starts with `STORE_` if the store fails.
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
  /** How much keys were used, by their ids; those that never were are left out. */
  findUsage(ids: readonly string[]): Promise<Map<string, UsageTotals>>;
  /** How the requests of a key ended, by hours or days in their order; those without a request are left out. */
  findPeriodUsage(id: string, range: UsageRange): Promise<PeriodUsage[]>;
  /** The ids of those of these keys that the policy has disabled, and nobody since. */
  findDisabledByPolicy(keys: readonly Pick<ApiKey, 'id' | 'disabledAt'>[]): Promise<Set<string>>;
  /** The permissions that keys have used, by their ids, each with its last use in milliseconds since 1970. */
  findUsedPermissions(ids: readonly string[]): Promise<Map<string, Map<UsedGrant, number>>>;
  /** The audit log. */
  readonly auditLog: AuditReader;
  /** The requests of applications for keys. */
  readonly consents: ConsentFinder;
  /** The sessions of people who have signed in. */
  readonly sessions: SessionFinder;
  /** What keys did to others. */
  readonly effects: EffectFinder;
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
  /** Keeps keys apart, at least one, each after the key that created it, in pieces between which others can write. */
  stage(keys: readonly StoredKey[], entry: BatchEntry, onProgress?: ProgressReport): Promise<StagedKeys>;
  /** Removes the staged keys of a batch, or all, in pieces as well. */
  clearStaged(batch?: string): Promise<void>;
  /** Resolves when the store answers. */
  check(): Promise<void>;
  /** Whether searches of keys go by an index. Without it, PostgreSQL reads through the keys. */
  hasSearchIndex(): Promise<boolean>;
  /**
   * Calls back when the changes of other processes are no longer heard, and when they are heard again. Meanwhile there
   * is no revision. A file is looked at instead, and is never reported.
   */
  watchHearing(report: HearingReport): void;
}
