import { type Limit, parseLimits } from '../keys/limit.ts';
import { type Source, WIDE_DIGITS } from '../keys/networks.ts';
import { available, availableAt, type Rate, computeRate, spend } from './lease.ts';

/** How many names of each width are told apart, so that their number takes no more memory. */
const MAX_NAMES = 10_000;
/** How often names are forgotten whose limit is unused, in microseconds, where there are too many. */
const SWEEP_US = 1_000_000;
/** How many times as much as an address its network may have, and all networks that one holder may have. */
const TIMES = { wide: 50, network: 3, source: 1 } as const;

/**
 * Counts attempts by where they come from, in the memory of this process: keys that are not valid, codes that are
 * tried, requests for keys. They are counted by wide networks first, then by networks and addresses: so whoever has
 * many addresses is refused by what they have in common, and takes no room from others.
 */
export class AttemptCounter {
  readonly limit: Limit;
  readonly #elapsed: () => number;
  readonly #wide: Width;
  readonly #network: Width;
  readonly #source: Width;

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

  /**
   * @param limit of one address
   * @param elapsed milliseconds since any moment, which nobody can set
   */
  constructor(limit: Limit, elapsed: () => number = () => performance.now()) {
    this.limit = limit;
    this.#elapsed = elapsed;
    this.#wide = new Width(limit, TIMES.wide);
    this.#network = new Width(limit, TIMES.network);
    this.#source = new Width(limit, TIMES.source);
  }

  /** How many names it remembers: at most 10,000 of each width, and one for the others. */
  get size(): number {
    return this.#wide.size + this.#network.size + this.#source.size;
  }

  /** In how many microseconds there may be another attempt; undefined within the limit. */
  wait(source: Source): number | undefined {
    return this.#attempt(source, false);
  }

  /** Counts an attempt. @returns what `wait` does */
  add(source: Source): number | undefined {
    return this.#attempt(source, true);
  }

  /** What one address has too many of is not at the cost of its network, nor the other way round. */
  #attempt({ source, network }: Source, counts: boolean): number | undefined {
    const now = Math.floor(this.#elapsed() * 1000);
    const widths: [Width, string][] = [[this.#source, source]];
    if (network !== undefined) widths.unshift([this.#wide, network.slice(0, WIDE_DIGITS)], [this.#network, network]);
    // What is not told apart any more counts by what is wider, and only the widest together with all others.
    const counted = widths.flatMap(([width, name], index): [Width, string][] =>
      width.hasRoom(name, now) ? [[width, name]] : index === 0 ? [[width, OTHERS]] : [],
    );
    for (const [width, name] of counted) {
      const wait = width.wait(name, now);
      if (wait !== undefined) return wait;
    }
    if (counts) for (const [width, name] of counted) width.spend(name, now);
    return undefined;
  }
}

const OTHERS = 'others';

/** What is counted of addresses, of networks, or of wide networks. */
class Width {
  readonly #rate: Rate;
  /** When a limit is unused again, by name. */
  readonly #names = new Map<string, number>();
  #sweptAt = 0;

  constructor(limit: Limit, times: number) {
    const { burst, intervalUs } = computeRate(limit);
    this.#rate = { burst: burst * times, intervalUs: Math.ceil(intervalUs / times) };
  }

  get size(): number {
    return this.#names.size;
  }

  hasRoom(name: string, now: number): boolean {
    const names = this.#names;
    if (names.size < MAX_NAMES || names.has(name)) return true;
    if (now - this.#sweptAt >= SWEEP_US) {
      this.#sweptAt = now;
      for (const [each, unusedAt] of names) if (unusedAt <= now) names.delete(each);
    }
    return names.size < MAX_NAMES;
  }

  wait(name: string, now: number): number | undefined {
    const unusedAt = this.#names.get(name) ?? 0;
    return available(unusedAt, now, this.#rate) === 0 ? availableAt(unusedAt, 1, this.#rate) - now : undefined;
  }

  spend(name: string, now: number): void {
    this.#names.set(name, spend(this.#names.get(name) ?? 0, now, 1, this.#rate));
  }
}
