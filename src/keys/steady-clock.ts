/** How far the time may run back: clocks are adjusted by seconds, and servers of one store differ by as much. */
const MAX_BACK_MS = 60_000;

/**
 * A clock that does not run back by more than a minute: neither from what it has shown, nor from the latest time that a
 * store remembers. Otherwise a key that has expired would be accepted again once the clock of the machine is set back.
 */
export class SteadyClock {
  readonly #read: () => number;
  #latest: number;

  /** Times are in milliseconds since 1970. */
  constructor(read: () => number, remembered: number) {
    this.#read = read;
    this.#latest = remembered;
  }

  now(): number {
    const now = this.#read();
    if (now >= this.#latest) return (this.#latest = now);
    return Math.max(now, this.#latest - MAX_BACK_MS);
  }

  /** By how many milliseconds the clock of the machine is behind this one. */
  behind(): number {
    return this.now() - this.#read();
  }
}
