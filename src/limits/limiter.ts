import type { AppliedLimit, Restrictions } from '../keys/authorization/restrictions.ts';
import { type Limit, LIMIT_SECONDS, type LimitParts, splitLimit } from '../keys/limit.ts';
import { debugTimed } from '../keys/steps.ts';
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

/** How a request stands to one of its limits. */
export interface Standing extends LimitParts {
  readonly limit: Limit;
  /** How many requests may follow at once, as far as this process knows. */
  readonly remaining: number;
  /** In how many microseconds there will be one more; 0 where all of the limit is left. */
  readonly moreIn: number;
}

/** A limit, and what this process knows of its use. Times are those of the store's clock. */
interface KnownLimit extends LimitParts {
  readonly keyId: string;
  readonly limit: Limit;
  readonly rate: Rate;
  granted: LeaseGrant['limits'][number];
  /** See `LeasedLimit`. */
  unusedAt: number;
}

/** A lease can be used for this part of the shortest time of its limits. */
const LIFE_PART = 1 / 10;
/** How long a process does not ask again after it was told that nothing is left, in microseconds. */
const REST_US = 100_000;
/** More than any limit leases. */
const MAX_AHEAD = 1_000_000_000;
const NEVER = Number.NEGATIVE_INFINITY;

/**
 * What a process may accept of the requests that count against the same limits: its lease, without asking the store.
 * Times are microseconds of a clock that only goes forwards.
 */
export class Allowance {
  readonly #holder: string;
  readonly #limits: readonly KnownLimit[];
  readonly #lifeUs: number;
  readonly #restUs: number;
  /** How much the store's clock is ahead of this one, at most. */
  #offset = 0;
  #left = 0;
  #used = 0;
  #endsAt = NEVER;
  #askedAt = NEVER;
  #ahead = 0;
  /** Until then the store would grant nothing. */
  #emptyUntil = NEVER;

  /** @param holder identifies the leases of this allowance among those of all processes */
  constructor(holder: string, limits: readonly AppliedLimit[]) {
    this.#holder = holder;
    this.#limits = limits.map((applied) => ({
      ...applied,
      ...splitLimit(applied.limit),
      rate: computeRate(applied.limit),
      granted: { unusedAt: 0, leased: 0 },
      unusedAt: 0,
    }));
    const seconds = Math.min(...this.#limits.map(({ unit }) => LIMIT_SECONDS[unit]));
    this.#lifeUs = Math.min(seconds * 1_000_000 * LIFE_PART, MAX_LIFE_US);
    // Where requests become available more slowly, each time when one does is waited for.
    this.#restUs = this.#limits.some(({ rate }) => rate.intervalUs < REST_US) ? REST_US : 0;
  }

  /** When the lease ends of which the store has not been told what was used; undefined if there is none. */
  get endsAt(): number | undefined {
    return this.#endsAt === NEVER ? undefined : this.#endsAt;
  }

  /** Whether nothing is known that would be missed. */
  isIdle(now: number): boolean {
    return this.#endsAt === NEVER && now >= this.#emptyUntil;
  }

  /** Lets a request in, or refuses it; undefined where only the store can tell. */
  take(now: number): boolean | undefined {
    if (this.#left === 0 || now >= this.#endsAt) return now < this.#emptyUntil ? false : undefined;
    this.#left -= 1;
    this.#used += 1;
    for (const known of this.#limits) known.unusedAt = spend(known.unusedAt, now + this.#offset, 1, known.rate);
    return true;
  }

  /** What to ask the store for. It ends the lease: nothing may be taken until the answer is there. */
  ask(waiting: number, now: number): LeaseRequest {
    // Twice as much if the last lease was used up early, otherwise as much as was used of it.
    const isEarly = now - this.#askedAt < this.#lifeUs;
    this.#ahead = isEarly ? Math.min(Math.max(2 * this.#ahead, 1), MAX_AHEAD) : this.#used;
    this.#askedAt = now;
    this.#left = 0;
    return {
      holder: this.#holder,
      used: this.#used,
      limits: this.#limits.map(({ keyId, limit, unusedAt }) => ({ keyId, limit, unusedAt })),
      waiting,
      ahead: waiting > 0 ? this.#ahead : 0,
      lifeUs: this.#lifeUs,
    };
  }

  /** Takes the store's answer, of which the lease is used from now on. */
  receive({ now: storeTime, granted, ahead, limits }: LeaseGrant, waiting: number, now: number): void {
    // The store has told its time at some moment since it was asked: it is this much later now, at most.
    this.#offset = storeTime - this.#askedAt;
    this.#left = ahead;
    this.#used = 0;
    this.#endsAt = ahead > 0 ? this.#askedAt + this.#lifeUs : NEVER;
    let next = NEVER;
    for (const [index, known] of this.#limits.entries()) {
      known.granted = limits[index]!;
      known.unusedAt = 0;
      next = Math.max(next, availableAt(known.granted.unusedAt, ahead + 1, known.rate));
    }
    // Where only what others have leased is left, that may be given back any time.
    if (next <= storeTime) this.#emptyUntil = granted < waiting ? this.#askedAt + REST_US : NEVER;
    else this.#emptyUntil = Math.max(next - storeTime + now, this.#askedAt + this.#restUs);
  }

  /** How a request that was accepted or refused now stands to each of its limits. */
  standings(now: number): Standing[] {
    const storeTime = now + this.#offset;
    return this.#limits.map(({ limit, count, unit, rate, granted, unusedAt }) => {
      const known = granted.unusedAt + (granted.leased + this.#used) * rate.intervalUs;
      const all = Math.max(known, unusedAt);
      const remaining = available(all, storeTime, rate);
      const moreIn = remaining < rate.burst ? availableAt(all, remaining + 1, rate) - storeTime : 0;
      return { limit, count, unit, remaining, moreIn };
    });
  }
}

/** What a limiter needs from outside. */
interface LimiterOptions {
  store: LimitStore;
  /** Milliseconds since any moment, which nobody can set: `performance.now`. */
  elapsed: () => number;
  /** Runs work after a delay in milliseconds. */
  schedule: (work: () => void, delayMs: number) => void;
  /** A random id of this process. */
  id: string;
}

/** Something by which requests are held to the limits of their keys. */
export interface Limited {
  readonly limiter: Limiter;
}

/** Whether a request is within its limits, and how it stands to each of them. */
export interface Decision {
  readonly isWithin: boolean;
  readonly standings: readonly Standing[];
}

/** The decision on a request; `gone` if the key, or a parent key, was deleted meanwhile. */
export type Answer = Decision | 'gone';

interface Waiting {
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
}

/** An allowance, and the requests that wait for what the store grants it. */
interface Entry {
  readonly id: string;
  readonly allowance: Allowance;
  waiting: Waiting[];
  /** Whether the store is being asked, or is about to be. */
  isAsking: boolean;
}

/** How many allowances ask in one transaction. */
const MAX_REQUESTS = 100;
/** How often allowances are forgotten that nobody uses. */
const SWEEP_MS = 60_000;

/** Holds requests to the limits of their keys, of which the processes of a store take leases. See docs/limits.md. */
export class Limiter {
  /** How often leases were asked for, and how many requests were over a limit, since the program started. */
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
   * Counts a request against its limits, or refuses it: at once where a lease, or that nothing is left, is known here.
   * @throws KeysError STORE_…, as a rejection
   */
  enter({ limitsId, limits }: Restrictions): Answer | Promise<Answer> {
    const entry = this.#entries.get(limitsId) ?? this.#add(limitsId, new Allowance(this.#holder(), limits));
    return (entry.isAsking ? undefined : this.#decide(entry)) ?? this.#wait(entry);
  }

  /** How many allowances are kept: of keys with limits that are in use. */
  get size(): number {
    return this.#entries.size;
  }

  /** Gives back what is leased, if the store takes it: at the end of the program. */
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

  /** Asks the store for all that ask, and after that for those that have begun to ask meanwhile. */
  async #flush(): Promise<void> {
    while (this.#asking.size > 0) {
      const entries = [...this.#asking].slice(0, MAX_REQUESTS);
      for (const entry of entries) this.#asking.delete(entry);
      await this.#askStore(entries);
    }
    // At once: whoever asks from now on has to start anew.
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

  /** Decides on the requests that have come while the store was asked. */
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

  /** Tells the store what was used of a lease that has ended, unless it knows. */
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
