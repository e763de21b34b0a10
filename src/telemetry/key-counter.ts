import type { KeyCounts } from '../keys/repository/index.ts';
import { inTime } from './in-time.ts';

/** How old a count of the keys may be, in milliseconds. */
const MAX_AGE_MS = 60_000;
/** How many times as long as a count took there is none after it. */
const REST_FACTOR = 50;
/** How long the first count is waited for, in milliseconds. */
const WAIT_MS = 2000;

/** Counts the keys of a store when somebody wants to know, but seldom: that reads through all of them. */
export class KeyCounter {
  readonly #count: () => Promise<KeyCounts>;
  #latest: KeyCounts | undefined;
  #counting: Promise<void> | undefined;
  #restsUntil = Number.NEGATIVE_INFINITY;

  constructor(count: () => Promise<KeyCounts>) {
    this.#count = count;
  }

  /** The latest count, which a later call may find renewed; undefined while there is none. */
  async latest(): Promise<KeyCounts | undefined> {
    if (performance.now() >= this.#restsUntil) this.#counting ??= this.#renew();
    if (!this.#latest && this.#counting) await inTime(this.#counting, WAIT_MS);
    return this.#latest;
  }

  async #renew(): Promise<void> {
    const began = performance.now();
    try {
      this.#latest = await this.#count();
    } catch {
      // The store does not answer, which is logged where a request needs it.
      this.#latest = undefined;
    } finally {
      const ended = performance.now();
      this.#restsUntil = ended + Math.max(MAX_AGE_MS, REST_FACTOR * (ended - began));
      this.#counting = undefined;
    }
  }
}
