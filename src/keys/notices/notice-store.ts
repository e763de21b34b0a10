import type { AuditEntry } from '../audit/audit-entry.ts';
import type { EndingKey, EndingsPosition, EndsQuery } from './endings.ts';
import type { Notice, WaitingNotice } from './notice.ts';
import type { NoticedRefusals, RefusedKey } from './refusals.ts';

/** How far the store was looked through. */
export interface NoticeState {
  /** The last entry of the audit log that was looked at. */
  logNumber: number;
  /** When the store was last looked through, in milliseconds since 1970. */
  seenAt: number;
  endings: EndingsPosition;
  refusals: NoticedRefusals;
  /** What identifies the webhook that wants no notices any more; null if there is none. */
  gone: string | null;
}

/** How notices are doing. Times are milliseconds since 1970. */
export interface NoticeStatus {
  /** When a server with a webhook last looked through the store. */
  seenAt: number;
  /** How many wait, and since when the oldest does. */
  waiting: number;
  oldestAt: number | null;
  /** How many entries of the audit log were not looked at. */
  behind: number;
  deliveredAt: number | null;
  failedAt: number | null;
  failure: string | null;
  gone: string | null;
}

/** What became of an attempt. */
export interface Attempt {
  id: string;
  /** When it ended. */
  at: number;
  /** Why it failed, in words for users; null if it did not. */
  failure: string | null;
  /** When the next one is due; null if there is none. */
  nextAt: number | null;
}

/** A transaction of the process that has the lease. */
export interface NoticeWriter {
  /** Undefined before the first time. */
  readonly state: NoticeState | undefined;
  /** The number of the newest entry of the audit log. */
  head(): Promise<number>;
  /** Entries of the audit log after a number, oldest first. */
  entries(after: number, limit: number): Promise<AuditEntry[]>;
  /** Keys in the order of their ends, also damaged ones. */
  ending(query: EndsQuery): Promise<EndingKey[]>;
  countWaiting(): Promise<number>;
  /** Adds notices that are due at once. One that is there already stays as it is. */
  add(notices: readonly Notice[], now: number): Promise<void>;
  setState(state: NoticeState): Promise<void>;
  settle(attempts: readonly Attempt[]): Promise<void>;
  /** Removes all that wait. */
  clear(): Promise<void>;
}

/** Where notices wait, shared by all processes of a store. All methods reject with a `KeysError` STORE_… */
export interface NoticeStore {
  /**
   * Runs `work` in a transaction, if no other process has the lease, which is then this one's for so long.
   * @returns undefined where another process has it
   */
  withLease<Result>(
    lease: { holder: string; forMs: number },
    work: (writer: NoticeWriter) => Promise<Result>,
  ): Promise<Result | undefined>;
  /** Gives the lease up. */
  release(holder: string): Promise<void>;
  /** Whether no other process has the lease. */
  isFree(holder: string): Promise<boolean>;
  /** How many entries of the audit log were not looked at. */
  behind(): Promise<number>;
  /** How many wait. */
  countWaiting(): Promise<number>;
  /** Those that are due, the longest waiting first. */
  due(now: number, limit: number): Promise<WaitingNotice[]>;
  /** The keys that were refused at least so often within an hour since 1970, in no order, up to a limit. */
  findRefused(hour: number, query: { least: number; limit: number }): Promise<RefusedKey[]>;
  /** Undefined if no notices were ever collected. */
  status(): Promise<NoticeStatus | undefined>;
  /** Lets a webhook that wanted no notices have them again. */
  forgetGone(): Promise<void>;
}
