import type { ActivityEvents } from '../../keys/authentication/index.ts';
import type { KeyUse } from '../../keys/key/index.ts';
import type { LeaseGrant, LeaseRequest } from '../../limits/index.ts';

/** What keys were used for. Whoever gets it twice, by the same id, counts it once. */
export interface ActivityReport extends ActivityEvents {
  /** A UUID. */
  readonly id: string;
  readonly usage: readonly KeyUse[];
}

/** What a source asks of who follows by it, and tells them. */
export interface Watching {
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Is told each time that the origin did not answer, or refused. */
  readonly failed: (error: unknown) => void;
  /**
   * Whether nobody asks for keys, so that no lease is needed: a signal that is aborted once one is. Undefined while one
   * is.
   */
  readonly resting: () => AbortSignal | undefined;
}

/** Times of a rest, in milliseconds. */
export const REST = {
  /** How long the origin is asked nothing, but to tell of what changes. */
  askedMs: 15_000,
  /** One that ends sooner was refused. What breaks off later, as silent connections do, says nothing of the origin. */
  leastMs: 100,
  /** How long an answer is waited for in a rest and after it, at least: there is no lease that could end meanwhile. */
  patienceMs: 2000,
} as const;

/** How an edge gets the keys of its origin, and what it tells it. Lines are those that `FeedLines` reads. */
export interface FeedSource {
  /** The address, for texts. */
  readonly origin: string;
  /** All keys: lines in pieces of any length. @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_… */
  snapshot(signal: AbortSignal): AsyncIterable<Buffer>;
  /**
   * Follows the changes behind a cursor, over connections that fail, until it is aborted. What arrives is handed on
   * once it is whole.
   * @param take gets the lines, and when they were asked for, by `performance.now`; it resolves with the next cursor
   * @throws FeedGone; what `take` throws
   */
  follow(cursor: string, take: (lines: Buffer, askedAt: number) => Promise<string>, watching: Watching): Promise<never>;
  /** @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_… */
  reportActivity(report: ActivityReport): Promise<void>;
  /** @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_… */
  lease(requests: readonly LeaseRequest[]): Promise<(LeaseGrant | null)[]>;
  /** Tells the origin that no key is let pass any more, so that no change waits for the lease. @throws KeysError */
  leave(): Promise<void>;
  close(): void;
}

/** How long the origin is waited for at the end, in milliseconds. */
export const LEAVE_MS = 500;

/** The origin does not know a cursor: all keys are to be loaded anew. */
export class FeedGone extends Error {}
