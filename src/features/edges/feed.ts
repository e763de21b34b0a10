import { declarePort } from '../../keys/basics/index.ts';
import { NOTE_KEPT_MS } from '../../keys/repository/index.ts';

/**
 * The present rows of keys that changed after a position. A position is an opaque text of one store; those of an older
 * or another store are unknown.
 */
export interface FeedChanges {
  /** The position after them. */
  readonly cursor: string;
  /** Each a JSON array of the columns of a key: see `FEED_COLUMNS`. */
  readonly rows: readonly string[];
  /** The ids of deleted keys. */
  readonly gone: readonly string[];
  /** True if there are later changes already. */
  readonly hasMore: boolean;
}

/** The changes of keys, for servers without a store. */
interface FeedReader {
  /** The position after all changes. */
  head(): Promise<string>;
  /**
   * The changes after a position, in their order; undefined if the position is unknown.
   * @param also ids of further changed keys that the store may not have recorded
   */
  since(cursor: string, limit: number, also?: readonly string[]): Promise<FeedChanges | undefined>;
  /** The rows of all keys, in pages: each as it is when its page is read. */
  pages(limit: number): AsyncIterable<readonly string[]>;
  /** The edges of this store, whichever process they follow. */
  edges(): Promise<KnownEdge[]>;
}
/** The port for the feed. */
export const FEED = declarePort<FeedReader, FeedReader>('feed');

/** A server without a store that has asked for changes within `LISTED_MS`. */
export interface KnownEdge {
  /** A random id of the process. */
  readonly id: string;
  /** The name shown to people. */
  readonly name: string;
  /** The id and the name of its key. */
  readonly key: { readonly id: string; readonly name: string };
  readonly address?: string | undefined;
  /** The rest of its lease in milliseconds; 0 if it must not answer. */
  readonly leaseMs: number;
  /** How long it needs no lease, because it has no requests, in milliseconds; 0 if it has some. */
  readonly restMs: number;
  /** How many milliseconds ago it was last known to have all changes. */
  readonly lagMs: number;
  /** How many milliseconds ago it last asked for something. */
  readonly seenMs: number;
}

/** True for an edge that refuses keys, or would if it were asked. */
export function isBehind({ leaseMs, restMs }: Pick<KnownEdge, 'leaseMs' | 'restMs'>): boolean {
  return leaseMs <= 0 && restMs <= 0;
}

/** How long an edge stays listed after its last request, in milliseconds. */
export const LISTED_MS = NOTE_KEPT_MS;
/** How often a process publishes the edges that it knows, in milliseconds. */
export const TELL_MS = 2000;

/**
 * Edges as they are this many milliseconds after a process published them, if they are still listed. Until the next
 * publication is overdue, they count as unchanged.
 */
export function edgesAfter(edges: readonly KnownEdge[], toldMs: number): KnownEdge[] {
  const ageMs = Math.max(toldMs - 2 * TELL_MS, 0);
  return edges
    .map(({ leaseMs, restMs, lagMs, seenMs, ...edge }) => ({
      ...edge,
      leaseMs: Math.max(leaseMs - ageMs, 0),
      restMs: Math.max(restMs - ageMs, 0),
      // A change would be sent to a resting edge, which then asks, so its lag does not grow.
      lagMs: restMs > ageMs ? lagMs : lagMs + ageMs,
      seenMs: seenMs + ageMs,
    }))
    .filter(({ seenMs }) => seenMs < LISTED_MS);
}
