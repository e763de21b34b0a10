/** How far the time may run back: clocks are adjusted by seconds, and servers of one store differ by as much. */
const MAX_BACK_MS = 60_000;

/** What tells the time. */
export interface TimeSource {
  /** The time of the machine, in milliseconds since 1970. */
  read: () => number;
  /** Milliseconds since any moment, which nobody can set: `performance.now`. */
  elapsed: () => number;
}

/**
 * A clock that does not run back by more than a minute: neither from what it has shown, nor from the latest time that a
 * store remembers. Otherwise a key that has expired would be accepted again once the clock of the machine is set back.
 * While the machine is behind, this clock goes on by itself.
 */
export class SteadyClock {
  readonly #source: TimeSource;
  /** The earliest time to show when `elapsed` was `#since`. */
  #floor: number;
  #since: number;

  /** @param remembered the latest time that the store remembers, in milliseconds since 1970 */
  constructor(source: TimeSource, remembered: number) {
    this.#source = source;
    this.#floor = remembered - MAX_BACK_MS;
    this.#since = source.elapsed();
  }

  now(): number {
    const [now, elapsed] = [this.#source.read(), this.#source.elapsed()];
    const earliest = this.#floor + elapsed - this.#since;
    if (now < earliest) return Math.floor(earliest);
    if (now - MAX_BACK_MS > earliest) [this.#floor, this.#since] = [now - MAX_BACK_MS, elapsed];
    return now;
  }

  /** By how many milliseconds the clock of the machine is behind this one. */
  behind(): number {
    return this.now() - this.#source.read();
  }
}
