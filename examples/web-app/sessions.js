import { randomBytes } from 'node:crypto';

/** Keeps data for each browser in memory, for a limited time. The browser's cookie has only a random id. */
export class Sessions {
  #kept = new Map();
  #forMs;
  #most;

  /** @param {{ minutes: number, most: number }} options the lifetime, and the most sessions at a time */
  constructor({ minutes, most }) {
    this.#forMs = minutes * 60_000;
    this.#most = most;
  }

  /** Keeps data. @returns {string} the id for the cookie */
  add(value) {
    const id = randomBytes(32).toString('base64url');
    for (const [old, { ends }] of this.#kept) {
      // Oldest first.
      if (ends > Date.now() && this.#kept.size < this.#most) break;
      this.#kept.delete(old);
    }
    this.#kept.set(id, { value, ends: Date.now() + this.#forMs });
    return id;
  }

  /** The data of a session; undefined if it is missing or has expired. */
  get(id) {
    const { value, ends } = this.#kept.get(id) ?? {};
    return ends > Date.now() ? value : undefined;
  }

  delete(id) {
    this.#kept.delete(id);
  }
}
