/** The number of changes kept. Processes that have not asked for longer drop all remembered keys. */
export const MAX_CHANGES = 4096;

/** The latest changes of keys that this process was notified of, in memory. */
export class KeyChanges {
  #ids: string[] = [];
  /** The revision before the first kept change. */
  #start = 0;

  /** A number that grows with each change. */
  get revision(): number {
    return this.#start + this.#ids.length;
  }

  /** Adds changes of these keys. */
  add(ids: readonly string[]): void {
    if (ids.length > MAX_CHANGES) return this.addUnknown();
    this.#ids.push(...ids);
    if (this.#ids.length <= 2 * MAX_CHANGES) return;
    this.#start = this.revision - MAX_CHANGES;
    this.#ids = this.#ids.slice(-MAX_CHANGES);
  }

  /** Adds a change of unknown keys, which can be any. */
  addUnknown(): void {
    this.#start = this.revision + 1;
    this.#ids = [];
  }

  /** See `KeyRepository.keysChangedSince`. */
  since(revision: number): readonly string[] | 'any' {
    return revision < this.#start ? 'any' : this.#ids.slice(revision - this.#start);
  }
}
