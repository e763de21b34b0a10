import { randomBytes } from 'node:crypto';

/**
 * What the server keeps of a browser, in memory, for a time. The browser has a cookie with a random id, which says
 * nothing.
 */
export class Sessions {
  #kept = new Map();
  #forMs;
  #most;

  /** @param {{ minutes: number, most: number }} options how long, and how many at once */
  constructor({ minutes, most }) {
    this.#forMs = minutes * 60_000;
    this.#most = most;
  }

  /** Keeps something. @returns {string} the id for the cookie */
  add(value) {
    const id = randomBytes(32).toString('base64url');
    for (const [old, { ends }] of this.#kept) {
      // The oldest come first.
      if (ends > Date.now() && this.#kept.size < this.#most) break;
      this.#kept.delete(old);
    }
    this.#kept.set(id, { value, ends: Date.now() + this.#forMs });
    return id;
  }

  /** What is kept; undefined if there is nothing, or no longer. */
  get(id) {
    const { value, ends } = this.#kept.get(id) ?? {};
    return ends > Date.now() ? value : undefined;
  }

  delete(id) {
    this.#kept.delete(id);
  }
}
