import { declarePort } from '../basics/index.ts';

/**
 * The rows of keys that have changed since a position, as they are now. A position is a text for the store alone; that
 * of an older or another store is not known.
 */
export interface FeedChanges {
  /** The position after them. */
  readonly cursor: string;
  /** Each a JSON array of the columns of a key: see `FEED_COLUMNS`. */
  readonly rows: readonly string[];
  /** The ids of keys that are gone. */
  readonly gone: readonly string[];
  /** Whether there are later changes already. */
  readonly hasMore: boolean;
}

/** The changes of keys, for servers that answer without a store. */
interface FeedReader {
  /** The position after all that was changed. */
  head(): Promise<string>;
  /**
   * What was changed after a position, in the order of the changes; undefined where the position is not known.
   * @param also ids of keys that were changed as well, which the store may not have noted
   */
  since(cursor: string, limit: number, also?: readonly string[]): Promise<FeedChanges | undefined>;
  /** The rows of all keys, in pages: each as it is when its page is read. */
  pages(limit: number): AsyncIterable<readonly string[]>;
  /** The servers without a store that follow this one, whichever process tells them. */
  edges(): Promise<KnownEdge[]>;
}
/** The port for it. */
export const FEED = declarePort<FeedReader, FeedReader>('feed');

/** A server without a store that has asked for changes within `LISTED_MS`. */
export interface KnownEdge {
  /** A random id of the process. */
  readonly id: string;
  /** How people call it. */
  readonly name: string;
  /** The id and the name of its key. */
  readonly key: { readonly id: string; readonly name: string };
  readonly address?: string | undefined;
  /** For how many milliseconds it may still answer; 0 if it may not. */
  readonly leaseMs: number;
  /** For how many milliseconds it needs no lease, as nobody asks it for keys; 0 if somebody does. */
  readonly restMs: number;
  /** How many milliseconds ago it was last known to have taken all changes. */
  readonly lagMs: number;
  /** How many milliseconds ago it asked for something. */
  readonly seenMs: number;
}

/** Whether an edge that somebody asks for a key refuses it, or would. */
export function isBehind({ leaseMs, restMs }: Pick<KnownEdge, 'leaseMs' | 'restMs'>): boolean {
  return leaseMs <= 0 && restMs <= 0;
}

/** For how long a follower of a store is waited for that says nothing more, in milliseconds: no lease is longer. */
export const STORE_LEASE_MS = 2000;

/** How long such a server is listed that asks no more, in milliseconds. */
export const LISTED_MS = 600_000;
/** How often a process tells of the edges that it knows, in milliseconds. */
export const TELL_MS = 2000;

/** Somebody who tells changes of keys on to others. A change returns once none of these lets a key pass as before. */
export interface Follower {
  /**
   * Is told that keys were created, changed or deleted.
   * @returns resolves once all whom it tells know of that, or let no key pass any more
   */
  changed(): Promise<void>;
  /** Resolves once all whom it told let no key pass any more. */
  ended(): Promise<void>;
}

/** How somebody follows a store. */
export interface Following {
  /**
   * Until when changes wait for this follower, by `performance.now`: as long as that, others may rely on what it tells
   * of the revision that it sees afterwards. In the past while the store does not answer.
   */
  leasedUntil(): number;
  /** Lets every process list whom this one tells. @throws KeysError STORE_…, an error of the file system */
  tell(edges: readonly KnownEdge[]): Promise<void>;
  /** Ends it. Changes wait for as long as they would have, where `ended` has not resolved. */
  stop(): Promise<void>;
}
