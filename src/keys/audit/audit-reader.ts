import { declarePort } from '../basics/index.ts';
import type { KeyObject } from 'node:crypto';
import type { AuditAction, AuditDraft, AuditedChange, AuditEntry, AuditOutcome, AuditPosition } from './audit-entry.ts';

/** Selects entries of the audit log. */
export interface AuditFilter {
  /** The id or name of the key that was changed. */
  apiKey?: string | undefined;
  /** The id or name of the key, or the name of the user, that did it. */
  actor?: string | undefined;
  /** The action. */
  action?: AuditAction | undefined;
  /** Only actions that were done, or only requests that were refused. */
  outcome?: AuditOutcome | undefined;
  /** At or after this time, in milliseconds since 1970. */
  since?: number | undefined;
  /** Before this time, in milliseconds since 1970. */
  until?: number | undefined;
}

/** The key whose entries a reader can see, with those of its child keys. */
export interface AuditOwner {
  id: string;
  withCreated: boolean;
}

/** Entries that match a filter and that the reader is allowed to see. */
export interface AuditSelection extends AuditFilter {
  /**
   * Only entries about or by the keys of this owner, and entries that concern no key; null for the latter alone. A
   * filter never matches the name of another key or user.
   */
  owner?: AuditOwner | null | undefined;
  /** Only entries with a smaller number. */
  before?: number | undefined;
  /** Only entries with a larger number. */
  after?: number | undefined;
}

/** A page of entries that match a filter. */
export interface AuditQuery extends AuditSelection {
  /** The maximum number of entries. */
  limit: number;
  /** Which entries come first. */
  order: 'newest' | 'oldest';
}

/** How many entries were written in a period of time. */
export interface AuditCount {
  /** When it begins, in milliseconds since 1970. */
  start: number;
  /** How many there are. */
  entries: number;
  /** How many of them are requests that were refused. */
  refused: number;
}

/** Read access to the audit log. */
export interface AuditReader {
  /** The key of the chain; undefined if there is none. */
  readonly key: KeyObject | undefined;
  /** The entries that match, in the order asked for. */
  find(query: AuditQuery): Promise<AuditEntry[]>;
  /** The changes of the keys with these ids, without refused requests and containments, in the order asked for. */
  findChanges(
    ids: readonly string[],
    page: Pick<AuditQuery, 'limit' | 'order' | 'before' | 'after'>,
  ): Promise<AuditedChange[]>;
  /**
   * The ids of the keys changed by the entries after a number, up to another; creations and imports do not count. An id
   * can occur several times.
   */
  findChanged(after: number, upTo: number): Promise<string[]>;
  /** The number of entries that match, for each period of this many milliseconds that has any, in no order. */
  count(selection: AuditSelection, periodMs: number): Promise<AuditCount[]>;
  /** The number of the first entry with at least this number, and when it was written; undefined if there is none. */
  timeFrom(number: number): Promise<{ number: number; at: number } | undefined>;
  /** The newest entry; undefined while there is none. */
  head(): Promise<AuditPosition | undefined>;
  /** The last entry that was pruned; undefined if none was. The oldest remaining entry is chained to it. */
  start(): Promise<AuditPosition | undefined>;
  /**
   * The last entry, without a gap, that was written before a time, in milliseconds since 1970, and is not after a
   * number.
   */
  lastBefore(time: number, upTo: number): Promise<AuditPosition | undefined>;
  /**
   * The last changes of keys that are missing from the store without having been deleted, from the entries after a
   * number, up to another.
   */
  findLost(after: number, upTo: number): Promise<AuditEntry[]>;
}

/** Write access to the audit log, in a transaction. */
export interface AuditWriter {
  readonly auditLog: AuditReader;
  /** Chains entries to the audit log. @throws KeysError STORE_AUDIT_KEY if it has a key that is not known */
  appendToAuditLog(entries: readonly AuditDraft[]): Promise<void>;
  /** Moves the start of the log behind this entry. Earlier ones no longer belong to it. */
  startAuditLogAfter(last: AuditPosition): Promise<void>;
  /** Removes so many entries from before the start, at most. @returns how many */
  removePruned(limit: number): Promise<number>;
  /**
   * Deletes secrets that keys lost before a time, in milliseconds since 1970, and effects on deleted keys that led to
   * no others: at most this many of each.
   * @returns how many
   */
  forgetBefore(before: number, limit: number): Promise<number>;
}

/** Finds keys that the policy has disabled. */
interface PolicyEntries {
  /** The ids of the keys that the policy has disabled and that are still disabled. */
  disabled(keys: readonly { readonly id: string; readonly disabledAt: number | null }[]): Promise<Set<string>>;
}
export const POLICY_ENTRIES = declarePort<PolicyEntries>('entries of the policy');
