/** How long changes wait for a silent follower of a store, in milliseconds: no lease is longer. */
export const STORE_LEASE_MS = 2000;

/** How long the note of a follower is kept, in milliseconds. */
export const NOTE_KEPT_MS = 600_000;

/**
 * A process part that passes on changes of keys. A change returns once no recipient accepts a key in its former state.
 */
export interface Follower {
  /**
   * Called after keys were created, changed or deleted.
   * @returns resolves once every recipient has the change or accepts no key any more
   */
  changed(): Promise<void>;
  /** Resolves once no recipient accepts keys any more. */
  ended(): Promise<void>;
}

/** A text of a follower of a store about its recipients. */
export interface FollowerNote {
  readonly text: string;
  /** How many milliseconds ago it was written. */
  readonly ageMs: number;
}

/** A follower's connection to a store. */
export interface Following {
  /**
   * Until when changes wait for this follower, by `performance.now`. Until then, recipients can rely on the revision
   * that it sees afterwards. In the past while the store does not answer.
   */
  leasedUntil(): number;
  /** Replaces the note of this follower, which each process can read. @throws KeysError STORE_…, an error of the file system */
  note(text: string): Promise<void>;
  /** Stops following. If `ended` has not resolved, changes still wait until the lease ends. */
  stop(): Promise<void>;
}
