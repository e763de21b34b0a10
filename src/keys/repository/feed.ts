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
}
/** The port for it. */
export const FEED = declarePort<FeedReader, FeedReader>('feed');

/** Somebody who tells changes of keys on to others. A change returns once none of these lets a key pass as before. */
export interface Follower {
  /**
   * Is told that `KeyRepository.revision` has grown.
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
  /** Ends it. Changes wait for as long as they would have, where `ended` has not resolved. */
  stop(): Promise<void>;
}
