import type { AppliedLimit, Restrictions } from '../keys/authorization/index.ts';
import {
  debugTimed,
  type Limit,
  type LimitParts,
  parseRates,
  type Source,
  splitLimit,
  WIDE_DIGITS,
} from '../keys/basics/index.ts';
import {
  available,
  availableAt,
  type LeaseGrant,
  type LeaseRequest,
  type LimitStore,
  MAX_LIFE_US,
  type Rate,
  computeRate,
  spend,
} from './lease.ts';

/** The state of one limit after a request. */
export interface Standing extends LimitParts {
  readonly limit: Limit;
  /** The amount that a request counts as. */
  readonly weight: number;
  /** How much can follow at once, as far as this process knows. */
  readonly remaining: number;
  /** The time until one more is available, in microseconds; Infinity for never, 0 if the limit is unused. */
  readonly moreIn: number;
  /** The time until another such request is allowed, in microseconds; Infinity for never, 0 for now. */
  readonly waitUs: number;
}

/** A limit, and its use as far as this process knows. Times are those of the store's clock. */
interface KnownLimit extends LimitParts, AppliedLimit {
  readonly weight: number;
  readonly rate: Rate;
  granted: LeaseGrant['limits'][number];
  /** See `LeasedLimit`. */
  unusedAt: number;
}

/** The part of the shortest period of its limits for which a lease can be used. */
const LIFE_PART = 1 / 10;
/** How long a process does not ask again after the store had nothing left, in microseconds. */
const REST_US = 100_000;
/** More than any limit can lease. */
const MAX_AHEAD = 1_000_000_000;
const NEVER = Number.NEGATIVE_INFINITY;

/**
 * The requests that a process can accept without asking the store: its lease on limits that the same requests count
 * against. Times are microseconds of a monotonic clock.
 */
export class Allowance {
  readonly #holder: string;
  readonly #limits: readonly KnownLimit[];
  readonly #lifeUs: number;
  readonly #restUs: number;
  /** How far the store's clock is ahead of this one, at most. */
  #offset = 0;
  #turn = 0;
  #left = 0;
  #used = 0;
  #endsAt = NEVER;
  #askedAt = NEVER;
  #ahead = 0;
  /** Until then, the store would grant nothing. */
  #emptyUntil = NEVER;

  /** @param holder identifies the leases of this allowance among those of all processes */
  constructor(holder: string, limits: readonly AppliedLimit[]) {
    this.#holder = holder;
    this.#limits = limits.map((applied) => ({
      weight: 1,
      ...applied,
      ...splitLimit(applied.limit),
      rate: computeRate(applied.limit),
      granted: { unusedAt: 0, leased: 0 },
      unusedAt: 0,
    }));
    const fulls = this.#limits.map(({ rate }) => (rate.refills ? rate.burst * rate.intervalUs : Infinity));
    this.#lifeUs = Math.min(Math.min(...fulls) * LIFE_PART, MAX_LIFE_US);
    // Slower limits wait for the time at which a request becomes available.
    this.#restUs = this.#limits.some(({ rate }) => rate.intervalUs < REST_US) ? REST_US : 0;
  }

  /** When the lease ends whose use was not reported to the store yet; undefined if there is none. */
  get endsAt(): number | undefined {
    return this.#endsAt === NEVER ? undefined : this.#endsAt;
  }

  /** True if dropping this allowance would lose nothing. */
  isIdle(now: number): boolean {
    return this.#endsAt === NEVER && now >= this.#emptyUntil;
  }

  /** Accepts or refuses a request; undefined if only the store knows. */
  take(now: number): boolean | undefined {
    if (this.#left === 0 || now >= this.#endsAt) return now < this.#emptyUntil ? false : undefined;
    this.#left -= 1;
    this.#used += 1;
    for (const known of this.#limits)
      known.unusedAt = spend(known.unusedAt, now + this.#offset, known.weight, known.rate);
    return true;
  }

  /** True if `take` would refuse. */
  isUsedUp(now: number): boolean {
    return (this.#left === 0 || now >= this.#endsAt) && now < this.#emptyUntil;
  }

  /** The request to the store. It ends the lease: nothing can be taken until the answer arrives. */
  ask(waiting: number, now: number): LeaseRequest {
    // Twice as much if the last lease was used up early, otherwise as much as was used of it.
    const isEarly = now - this.#askedAt < this.#lifeUs;
    this.#ahead = isEarly ? Math.min(Math.max(2 * this.#ahead, 1), MAX_AHEAD) : this.#used;
    this.#askedAt = now;
    this.#left = 0;
    this.#turn += 1;
    return {
      holder: this.#holder,
      turn: this.#turn,
      used: this.#used,
      limits: this.#limits.map(({ keyId, limit, route, weight, unusedAt }) => {
        return { keyId, limit, ...(route !== undefined && { route }), weight, unusedAt };
      }),
      waiting,
      ahead: waiting > 0 ? this.#ahead : 0,
      lifeUs: this.#lifeUs,
    };
  }

  /** Takes the store's answer, and uses the new lease from now on. */
  receive({ now: storeTime, granted, ahead, limits }: LeaseGrant, waiting: number, now: number): void {
    // The store read its clock at some time after the request, so this is the largest possible offset.
    this.#offset = storeTime - this.#askedAt;
    this.#left = ahead;
    this.#used = 0;
    this.#endsAt = ahead > 0 ? this.#askedAt + this.#lifeUs : NEVER;
    let next = NEVER;
    for (const [index, known] of this.#limits.entries()) {
      known.granted = limits[index]!;
      known.unusedAt = 0;
      next = Math.max(next, availableAt(known.granted.unusedAt, (ahead + 1) * known.weight, known.rate));
    }
    // A spent budget is asked for again all the same, since the key can be changed.
    if (next === Infinity) next = storeTime + MAX_LIFE_US;
    // If the rest is leased by others, they can return it at any time.
    if (next <= storeTime) this.#emptyUntil = granted < waiting ? this.#askedAt + REST_US : NEVER;
    else this.#emptyUntil = Math.max(next - storeTime + now, this.#askedAt + this.#restUs);
  }

  /** The standings of a request that was just accepted or refused, for each limit. */
  standings(now: number): Standing[] {
    const storeTime = now + this.#offset;
    return this.#limits.map(({ limit, count, unit, weight, rate, granted, unusedAt }) => {
      // Leases of others on a budget are not spent yet.
      const leased = (rate.refills ? granted.leased : 0) + this.#used * weight;
      const all = Math.max(granted.unusedAt + leased * rate.intervalUs, unusedAt);
      const remaining = available(all, storeTime, rate);
      const moreIn = remaining < rate.burst ? availableAt(all, remaining + 1, rate) - storeTime : 0;
      const waitUs = remaining < weight ? availableAt(all, weight, rate) - storeTime : 0;
      return { limit, count, unit, weight, remaining, moreIn, waitUs };
    });
  }
}

interface LimiterOptions {
  store: LimitStore;
  /** Milliseconds of a monotonic clock: `performance.now`. */
  elapsed: () => number;
  /** Runs work after a delay in milliseconds. */
  schedule: (work: () => void, delayMs: number) => void;
  /** A random id of this process. */
  id: string;
}

/** Has a rate limiter. */
export interface Limited {
  readonly limiter: Limiter;
}

/** The decision on a request, with its standing for each limit. */
export interface Decision {
  readonly isWithin: boolean;
  readonly standings: readonly Standing[];
}

/** The decision on a request; `gone` if the key, or a parent key, was deleted during it. */
export type Answer = Decision | 'gone';

interface Waiting {
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
}

/** An allowance, and the requests that wait for the store's grant. */
interface Entry {
  readonly id: string;
  readonly allowance: Allowance;
  waiting: Waiting[];
  /** True while the store is asked, or about to be. */
  isAsking: boolean;
}

/** The most allowances in one transaction. */
const MAX_REQUESTS = 100;
/** How often unused allowances are dropped, in milliseconds. */
const SWEEP_MS = 60_000;

/** Enforces the limits of keys, with leases that each process takes from the store. See docs/limits.md. */
export class Limiter {
  /** The number of lease requests, and of requests over a limit, since the program started. */
  readonly counts = { leases: 0, refused: 0 };
  readonly #options: LimiterOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #asking = new Set<Entry>();
  #flushing: Promise<void> | undefined;
  #holders = 0;

  constructor(options: LimiterOptions) {
    this.#options = options;
  }

  /**
   * Counts a request against its limits, or refuses it; at once if the answer is known here.
   * @throws KeysError STORE_…, as a rejection
   */
  enter({ limitsId, limits }: Restrictions): Answer | Promise<Answer> {
    const entry = this.#entries.get(limitsId) ?? this.#add(limitsId, new Allowance(this.#holder(), limits));
    return (entry.isAsking ? undefined : this.#decide(entry)) ?? this.#wait(entry);
  }

  /** True if a request would be refused, as far as is known here, before its cost is known. */
  isUsedUp({ limitsId }: Restrictions): boolean {
    return this.#entries.get(limitsId)?.allowance.isUsedUp(this.#now()) ?? false;
  }

  /** The limits that the processes of a store share. */
  get store(): LimitStore {
    return this.#options.store;
  }

  /** The number of allowances: one for each set of limits in use. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns all leases, if the store accepts them, when the program ends. */
  async finish(): Promise<void> {
    for (const entry of this.#entries.values()) if (entry.allowance.endsAt !== undefined) this.#ask(entry);
    await this.#flushing;
  }

  #now(): number {
    return Math.floor(this.#options.elapsed() * 1000);
  }

  #holder(): string {
    this.#holders += 1;
    return `${this.#options.id}-${this.#holders}`;
  }

  #add(id: string, allowance: Allowance): Entry {
    if (this.#entries.size === 0) this.#options.schedule(() => this.#sweep(), SWEEP_MS);
    const entry: Entry = { id, allowance, waiting: [], isAsking: false };
    this.#entries.set(id, entry);
    return entry;
  }

  #decide({ allowance }: Entry): Decision | undefined {
    const now = this.#now();
    const isWithin = allowance.take(now);
    if (isWithin === false) this.counts.refused += 1;
    return isWithin === undefined ? undefined : { isWithin, standings: allowance.standings(now) };
  }

  #wait(entry: Entry): Promise<Answer> {
    return new Promise((resolve, reject) => {
      entry.waiting.push({ resolve, reject });
      this.#ask(entry);
    });
  }

  #ask(entry: Entry): void {
    if (entry.isAsking) return;
    entry.isAsking = true;
    this.#asking.add(entry);
    this.#flushing ??= this.#flush();
  }

  /** Asks the store for all waiting allowances, and then for those that were added in the meantime. */
  async #flush(): Promise<void> {
    while (this.#asking.size > 0) {
      const entries = [...this.#asking].slice(0, MAX_REQUESTS);
      for (const entry of entries) this.#asking.delete(entry);
      await this.#askStore(entries);
    }
    // Set at once after the last check, since later callers must start a new flush.
    this.#flushing = undefined;
  }

  async #askStore(entries: readonly Entry[]): Promise<void> {
    this.counts.leases += entries.length;
    const asked = entries.map((entry) => {
      const waiting = entry.waiting;
      entry.waiting = [];
      return { entry, waiting, request: entry.allowance.ask(waiting.length, this.#now()) };
    });
    try {
      const requests = asked.map(({ request }) => request);
      const grants = await debugTimed(
        'limits were leased',
        () => this.#options.store.lease(requests),
        () => ({ leases: requests.length, waiting: asked.reduce((sum, { waiting }) => sum + waiting.length, 0) }),
      );
      for (const [index, { entry, waiting }] of asked.entries()) this.#receive(entry, waiting, grants[index]);
    } catch (error) {
      for (const { waiting } of asked) for (const { reject } of waiting) reject(error);
    }
    for (const entry of entries) this.#goOn(entry);
  }

  #receive(entry: Entry, waiting: readonly Waiting[], grant: LeaseGrant | undefined): void {
    if (!grant) {
      this.#entries.delete(entry.id);
      for (const { resolve } of waiting) resolve('gone');
      return;
    }
    const { allowance } = entry;
    const now = this.#now();
    allowance.receive(grant, waiting.length, now);
    const standings = allowance.standings(now);
    this.counts.refused += Math.max(0, waiting.length - grant.granted);
    for (const [index, { resolve }] of waiting.entries()) resolve({ isWithin: index < grant.granted, standings });
    const { endsAt } = allowance;
    if (endsAt !== undefined) this.#options.schedule(() => this.#endLease(entry, endsAt), (endsAt - now) / 1000 + 1);
  }

  /** Decides on the requests that arrived while the store was asked. */
  #goOn(entry: Entry): void {
    const waiting = entry.waiting;
    entry.isAsking = false;
    entry.waiting = [];
    for (const { resolve, reject } of waiting) {
      const decision = entry.isAsking ? undefined : this.#decide(entry);
      if (decision) resolve(decision);
      else this.#wait(entry).then(resolve, reject);
    }
  }

  /** Reports the use of an expired lease to the store, unless that was done. */
  #endLease(entry: Entry, endsAt: number): void {
    if (entry.allowance.endsAt === endsAt) this.#ask(entry);
  }

  #sweep(): void {
    const now = this.#now();
    for (const { id, allowance, isAsking } of this.#entries.values())
      if (!isAsking && allowance.isIdle(now)) this.#entries.delete(id);
    if (this.#entries.size > 0) this.#options.schedule(() => this.#sweep(), SWEEP_MS);
  }
}

/** The most names of each width that are counted separately, to limit memory. */
const MAX_NAMES = 10_000;
/** How often names with unused limits are dropped if there are too many, in microseconds. */
const SWEEP_US = 1_000_000;
/** The shared name of all that are not counted separately. */
const OTHERS = 'others';
/** The limits of a network, and of all networks that one holder can have, in multiples of an address's limit. */
const TIMES = { wide: 50, network: 3, source: 1 } as const;

/**
 * Counts attempts by origin, in the memory of this process: invalid keys, guessed codes, requests for keys. Counted by
 * wide networks first, then by networks and addresses: a holder of many addresses is refused by their common network,
 * and takes no room from others.
 */
export class AttemptCounter {
  readonly limit: Limit;
  readonly #elapsed: () => number;
  readonly #wide: Width;
  readonly #network: Width;
  readonly #source: Width;

  /**
   * A counter for a limit in text form; undefined for no limit. Continues an earlier counter with the same limit.
   * @throws RangeError for an invalid limit
   */
  static of(limit: string | false, earlier?: AttemptCounter): AttemptCounter | undefined {
    if (limit === false) return undefined;
    const { values, issues } = parseRates([limit]);
    if (!values[0]) throw new RangeError(issues[0]!.message);
    return earlier && earlier.limit === values[0] ? earlier : new AttemptCounter(values[0]);
  }

  /**
   * @param limit of one address
   * @param elapsed milliseconds of a monotonic clock
   */
  constructor(limit: Limit, elapsed: () => number = () => performance.now()) {
    this.limit = limit;
    this.#elapsed = elapsed;
    this.#wide = new Width(limit, TIMES.wide);
    this.#network = new Width(limit, TIMES.network);
    this.#source = new Width(limit, TIMES.source);
  }

  /** The number of names: at most 10,000 of each width, and one for the others. */
  get size(): number {
    return this.#wide.size + this.#network.size + this.#source.size;
  }

  /**
   * Counts an attempt. Excess attempts of an address do not count against its network, nor the other way round.
   * @returns the wait in microseconds; undefined within the limit
   */
  add({ source, network }: Source): number | undefined {
    const now = Math.floor(this.#elapsed() * 1000);
    const widths: [Width, string][] = [[this.#source, source]];
    if (network !== undefined) widths.unshift([this.#wide, network.slice(0, WIDE_DIGITS)], [this.#network, network]);
    // A name that is not counted separately counts only by its wider ones; the widest share one count.
    const counted = widths.flatMap(([width, name], index): [Width, string][] =>
      width.hasRoom(name, now) ? [[width, name]] : index === 0 ? [[width, OTHERS]] : [],
    );
    for (const [width, name] of counted) {
      const wait = width.wait(name, now);
      if (wait !== undefined) return wait;
    }
    for (const [width, name] of counted) width.spend(name, now);
    return undefined;
  }
}

/** The counts of addresses, of networks, or of wide networks. */
class Width {
  readonly #rate: Rate;
  /** When a limit is unused again, by name. */
  readonly #names = new Map<string, number>();
  #sweptAt = 0;

  constructor(limit: Limit, times: number) {
    const { burst, intervalUs } = computeRate(limit);
    this.#rate = { burst: burst * times, intervalUs: Math.ceil(intervalUs / times), refills: true };
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
