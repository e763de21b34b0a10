/** How many changes are kept. Whoever has not asked for longer has to forget all keys. */
export const MAX_CHANGES = 4096;

/** The latest changes of keys, as this process was notified of them, in memory. */
export class KeyChanges {
  #ids: string[] = [];
  /** The revision before the first of them. */
  #start = 0;

  /** A number that grows with each change. */
  get revision(): number {
    return this.#start + this.#ids.length;
  }

  /** These keys were changed. */
  add(ids: readonly string[]): void {
    if (ids.length > MAX_CHANGES) return this.addUnknown();
    this.#ids.push(...ids);
    if (this.#ids.length <= 2 * MAX_CHANGES) return;
    this.#start = this.revision - MAX_CHANGES;
    this.#ids = this.#ids.slice(-MAX_CHANGES);
  }

  /** Any key may have been changed. */
  addUnknown(): void {
    this.#start = this.revision + 1;
    this.#ids = [];
  }

  /** See `KeyRepository.keysChangedSince`. */
  since(revision: number): readonly string[] | 'any' {
    return revision < this.#start ? 'any' : this.#ids.slice(revision - this.#start);
  }
}
