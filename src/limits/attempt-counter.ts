import { type Limit, parseLimits } from '../keys/limit.ts';
import { available, availableAt, rateOf, spend } from './lease.ts';

/** How many sources are told apart; the others share one limit, so that the number takes no more memory. */
const MAX_SOURCES = 10_000;
const OTHERS = '';
/** How often sources are forgotten whose limit is unused, in microseconds, where there are too many. */
const SWEEP = 1_000_000;

/**
 * Counts attempts by where they come from, in the memory of this process: keys that are not valid, codes that are
 * tried, requests for keys.
 */
export class AttemptCounter {
  readonly limit: Limit;
  readonly #elapsed: () => number;
  /** When a limit is unused again, by source. */
  readonly #sources = new Map<string, number>();
  #sweptAt = 0;

  /**
   * With a limit as it was written, or without one. With the same limit as an earlier one, that goes on.
   * @throws RangeError if it is none
   */
  static of(limit: string | false, earlier?: AttemptCounter): AttemptCounter | undefined {
    if (limit === false) return undefined;
    const { values, issues } = parseLimits([limit]);
    if (!values[0]) throw new RangeError(issues[0]!.message);
    return earlier && earlier.limit === values[0] ? earlier : new AttemptCounter(values[0]);
  }

  /** @param elapsed milliseconds since any moment, which nobody can set */
  constructor(limit: Limit, elapsed: () => number = () => performance.now()) {
    this.limit = limit;
    this.#elapsed = elapsed;
  }

  /** In how many microseconds there may be another attempt; undefined within the limit. */
  wait(source: string): number | undefined {
    return this.#attempt(source, false);
  }

  /** Counts an attempt. @returns what `wait` does */
  add(source: string): number | undefined {
    return this.#attempt(source, true);
  }

  #attempt(source: string, counts: boolean): number | undefined {
    const rate = rateOf(this.limit);
    const now = Math.floor(this.#elapsed() * 1000);
    const known = this.#known(source, now);
    const unusedAt = this.#sources.get(known) ?? 0;
    if (available(unusedAt, now, rate) === 0) return availableAt(unusedAt, 1, rate) - now;
    if (counts) this.#sources.set(known, spend(unusedAt, now, 1, rate));
    return undefined;
  }

  /** The name under which a source is counted. */
  #known(source: string, now: number): string {
    if (this.#sources.has(source) || this.#sources.size < MAX_SOURCES) return source;
    if (now - this.#sweptAt >= SWEEP) {
      this.#sweptAt = now;
      for (const [name, unusedAt] of this.#sources) if (unusedAt <= now) this.#sources.delete(name);
    }
    return this.#sources.size < MAX_SOURCES ? source : OTHERS;
  }
}
