/** Keeps the values that were used last: as many as may be, and of sizes that may be in all. */
export class RecentlyUsed<Value> {
  /** In the order of their last use. */
  readonly #entries = new Map<string, { readonly value: Value; readonly size: number }>();
  readonly #maxEntries: number;
  readonly #maxSize: number;
  #size = 0;

  constructor(maxEntries: number, maxSize = Number.POSITIVE_INFINITY) {
    this.#maxEntries = maxEntries;
    this.#maxSize = maxSize;
  }

  /** The value of a key, which is used by that. */
  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Whether there is a value, which is not used by that. */
  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** Keeps a value in the place of that of its key; drops what was not used for longest. One too large is not kept. */
  set(key: string, value: Value, size = 0): void {
    this.delete(key);
    if (size > this.#maxSize) return;
    this.#entries.set(key, { value, size });
    this.#size += size;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#size <= this.#maxSize) return;
      this.delete(oldest);
    }
  }

  /** @returns whether there was a value */
  delete(key: string): boolean {
    this.#size -= this.#entries.get(key)?.size ?? 0;
    return this.#entries.delete(key);
  }
}
