import type { AppliedLimit } from '../keys/authorization/restrictions.ts';
import { type Limit, LIMIT_SECONDS, type LimitParts, splitLimit } from '../keys/limit.ts';
import { available, availableAt, type Rate, rateOf, spend } from './gcra.ts';
import { type LeaseGrant, type LeaseRequest, MAX_LIFE } from './lease.ts';

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
const REST = 100_000;
/** More than any limit leases. */
const MOST_AHEAD = 1_000_000_000;
const NEVER = Number.NEGATIVE_INFINITY;

/**
 * What a process may let in of the requests that count against the same limits: its lease, without asking the store.
 * Times are microseconds of a clock that only goes forwards.
 */
export class Allowance {
  readonly #holder: string;
  readonly #limits: readonly KnownLimit[];
  readonly #life: number;
  readonly #rest: number;
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
      rate: rateOf(applied.limit),
      granted: { unusedAt: 0, leased: 0 },
      unusedAt: 0,
    }));
    const seconds = Math.min(...this.#limits.map(({ unit }) => LIMIT_SECONDS[unit]));
    this.#life = Math.min(seconds * 1_000_000 * LIFE_PART, MAX_LIFE);
    // Where requests become available more slowly, each time when one does is waited for.
    this.#rest = this.#limits.some(({ rate }) => rate.interval < REST) ? REST : 0;
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
    const isEarly = now - this.#askedAt < this.#life;
    this.#ahead = isEarly ? Math.min(Math.max(2 * this.#ahead, 1), MOST_AHEAD) : this.#used;
    this.#askedAt = now;
    this.#left = 0;
    return {
      holder: this.#holder,
      used: this.#used,
      limits: this.#limits.map(({ keyId, limit, unusedAt }) => ({ keyId, limit, unusedAt })),
      waiting,
      ahead: waiting > 0 ? this.#ahead : 0,
      life: this.#life,
    };
  }

  /** Takes the store's answer, of which the lease is used from now on. */
  receive({ now: storeTime, granted, ahead, limits }: LeaseGrant, waiting: number, now: number): void {
    // The store has told its time at some moment since it was asked: it is this much later now, at most.
    this.#offset = storeTime - this.#askedAt;
    this.#left = ahead;
    this.#used = 0;
    this.#endsAt = ahead > 0 ? this.#askedAt + this.#life : NEVER;
    let next = NEVER;
    for (const [index, known] of this.#limits.entries()) {
      known.granted = limits[index]!;
      known.unusedAt = 0;
      next = Math.max(next, availableAt(known.granted.unusedAt, ahead + 1, known.rate));
    }
    // Where only what others have leased is left, that may be given back any time.
    if (next <= storeTime) this.#emptyUntil = granted < waiting ? this.#askedAt + REST : NEVER;
    else this.#emptyUntil = Math.max(next - storeTime + now, this.#askedAt + this.#rest);
  }

  /** How a request that was let in or refused now stands to each of its limits. */
  standings(now: number): Standing[] {
    const storeTime = now + this.#offset;
    return this.#limits.map(({ limit, count, unit, rate, granted, unusedAt }) => {
      const known = granted.unusedAt + (granted.leased + this.#used) * rate.interval;
      const all = Math.max(known, unusedAt);
      const remaining = available(all, storeTime, rate);
      const moreIn = remaining < rate.burst ? availableAt(all, remaining + 1, rate) - storeTime : 0;
      return { limit, count, unit, remaining, moreIn };
    });
  }
}
