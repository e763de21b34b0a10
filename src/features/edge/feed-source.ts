import type { Config } from '../../config/config.ts';
import type { ActivityEvents } from '../../keys/authentication/index.ts';
import type { Rule } from '../../keys/basics/index.ts';
import type { KeyUse } from '../../keys/key/index.ts';
import type { LeaseGrant, LeaseRequest } from '../../limits/index.ts';
import type { Log } from '../../log.ts';
import type { GivenToken } from './feed-token.ts';

/** A report of the use of keys. A receiver counts a repeated id once. */
export interface ActivityReport extends ActivityEvents {
  /** A UUID. */
  readonly id: string;
  readonly usage: readonly KeyUse[];
}

/** Callbacks between a source and its follower. */
export interface Watching {
  /** Aborted to end it. */
  readonly signal: AbortSignal;
  /** Called each time the origin did not answer, or refused. */
  readonly failed: (error: unknown) => void;
  /**
   * Set while no keys are requested, so that no lease is needed: a signal that is aborted on the next request.
   * Undefined otherwise.
   */
  readonly resting: () => AbortSignal | undefined;
}

/** Times of a rest, in milliseconds. */
export const REST = {
  /** Interval of requests that only wait for changes, in milliseconds. */
  askedMs: 15_000,
  /** A request that fails sooner was refused. Later failures, such as timeouts, say nothing about the origin. */
  leastMs: 100,
  /** Minimum time to wait for an answer during a rest and after it, when no lease can run out. */
  patienceMs: 2000,
} as const;

/** Connects an edge to its origin. Lines are those that `FeedLines` reads. */
export interface FeedSource {
  /** The address, for messages. */
  readonly origin: string;
  /** All keys, as lines in pieces of any length. @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_… */
  snapshot(signal: AbortSignal): AsyncIterable<Buffer>;
  /**
   * Follows the changes after a cursor, despite failing connections, until it is aborted. Passes on complete lines only.
   * @param take gets the lines, and when they were requested, by `performance.now`; it resolves with the next cursor
   * @throws FeedGone; errors of `take`
   */
  follow(cursor: string, take: (lines: Buffer, askedAt: number) => Promise<string>, watching: Watching): Promise<never>;
  /** @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_… */
  reportActivity(report: ActivityReport): Promise<void>;
  /** @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_… */
  lease(requests: readonly LeaseRequest[]): Promise<(LeaseGrant | null)[]>;
  /** Tells the origin that this edge accepts no more keys, so that no change waits for its lease. @throws KeysError */
  leave(): Promise<void>;
  close(): void;
}

/** Options of each source. */
export interface FeedOptions {
  readonly token: GivenToken;
  /** Name of the edge at the origin. Default: the name of this machine. */
  readonly name?: string | undefined;
  /** The requested lease, in milliseconds. */
  readonly leaseMs: number;
  readonly log: Log;
}

/** The place of keys beside HTTP, as in svc-api.yaml. The feature with that feed adds its property. */
// oxlint-disable-next-line typescript/no-empty-object-type
export interface EdgeFeed {}

/** A way to follow an origin beside HTTP, which a feature provides as `feed`. */
export interface FeedRoom {
  /** The rule of a place. */
  readonly rule: Rule<EdgeFeed>;
  /** The place that a configuration names; undefined for HTTP. */
  placeIn(config: Config): EdgeFeed | undefined;
  /** @throws KeysError CONFIG_UNAVAILABLE, CONFIG_INSECURE, CONFIG_INVALID of its files */
  open(place: EdgeFeed, options: FeedOptions): FeedSource;
}

/** Time to wait for the origin when closing, in milliseconds. */
export const LEAVE_MS = 500;

/** The origin does not know the cursor: load all keys again. */
export class FeedGone extends Error {}
