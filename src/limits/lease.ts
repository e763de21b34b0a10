import type { AppliedLimit } from '../keys/authorization/index.ts';
import { isBudget, type Limit, LIMIT_SECONDS, splitLimit } from '../keys/basics/index.ts';

/**
 * A limit in terms of the generic cell rate algorithm (GCRA, ITU-T I.371): `burst` requests at once, then one per
 * `interval`, in microseconds. With a limit of n per period, any span of s microseconds has at most n + s / interval
 * requests.
 *
 * The use of a limit is a single number: the time at which it is unused again. Each request moves it by one interval,
 * up to `burst` intervals ahead.
 *
 * A budget works the same with time standing still at 0: its number is the amount spent.
 */
export interface Rate {
  readonly burst: number;
  readonly intervalUs: number;
  /** False for a budget, which never becomes available again. */
  readonly refills: boolean;
}

/** The rate of a limit, with its interval rounded up to whole microseconds. */
export function computeRate(limit: Limit): Rate {
  const { count, unit } = splitLimit(limit);
  const seconds = unit in LIMIT_SECONDS ? LIMIT_SECONDS[unit as keyof typeof LIMIT_SECONDS] : undefined;
  return seconds === undefined
    ? { burst: count, intervalUs: 1, refills: false }
    : { burst: count, intervalUs: Math.ceil((seconds * 1_000_000) / count), refills: true };
}

/** The time at which a limit is unused again after more requests. All times are in microseconds, by one clock. */
export function spend(unusedAt: number, now: number, count: number, { intervalUs, refills }: Rate): number {
  return count === 0 ? unusedAt : Math.max(unusedAt, refills ? now : 0) + count * intervalUs;
}

/** The number of requests allowed now. */
export function available(unusedAt: number, now: number, rate: Rate): number {
  const used = Math.max(unusedAt - (rate.refills ? now : 0), 0);
  return Math.max(Math.floor((rate.burst * rate.intervalUs - used) / rate.intervalUs), 0);
}

/** The earliest time at which this many requests are allowed; Infinity for never. */
export function availableAt(unusedAt: number, count: number, { burst, intervalUs, refills }: Rate): number {
  const time = unusedAt - (burst - count) * intervalUs;
  return refills || time <= 0 ? time : Infinity;
}

/** Requests that a process has taken in advance, and can accept until a time, in microseconds of the store's clock. */
export interface Lease {
  readonly holder: string;
  /** See `LeaseRequest`. */
  readonly turn: number;
  readonly count: number;
  readonly endsAt: number;
}

/** How much of a key's limit is used, in terms of `Rate`, and the leases on the rest. */
export interface LimitState {
  /** The number of the limit when this was written. */
  readonly count: number;
  readonly unusedAt: number;
  readonly leases: readonly Lease[];
}

/** A limit that requests count against, and the use of its last lease. */
export interface LeasedLimit extends AppliedLimit {
  /** When the limit would be unused again, counting only this lease; 0 if nothing was used. */
  readonly unusedAt: number;
}

/** A process's request for a lease, with all limits that the same requests count against. */
export interface LeaseRequest {
  /** Identifies the leases of one process. A request ends the last lease and returns its rest. */
  readonly holder: string;
  /** The number of the request. Repeated and delayed requests do not affect later leases. */
  readonly turn: number;
  /** How many requests the last lease has accepted. */
  readonly used: number;
  readonly limits: readonly LeasedLimit[];
  readonly waiting: number;
  /** How many more are expected within `life`, the duration of the lease in microseconds. */
  readonly ahead: number;
  readonly lifeUs: number;
}

/** The store's answer to a request. */
export interface LeaseGrant {
  /** The time of the store's clock, in microseconds since 1970. */
  readonly now: number;
  readonly granted: number;
  /** How many more requests the process can accept. */
  readonly ahead: number;
  /** For each limit, its use without this lease, and the amount that others have leased. */
  readonly limits: readonly { readonly unusedAt: number; readonly leased: number }[];
}

/** The longest life of a lease, in microseconds. */
export const MAX_LIFE_US = 10_000_000;
/** How much longer the store keeps an expired lease, in microseconds, so that its holder can return the rest. */
const GRACE = 1_000_000;
/** The largest part of a limit in one lease; small limits are not leased at all. */
const LARGEST_PART = 1 / 10;
/** The largest part of a budget in one lease: lost amounts never come back, and people see the rest. */
const LARGEST_PART_OF_BUDGET = 1 / 1000;
/** Half of the available amount, or what refills in this time, in microseconds, can be leased. */
const DRIP_US = 100_000;
/** The most leases of one limit at a time. */
const MAX_LEASES = 256;

/**
 * Grants a lease as far as possible. All processes together accept no more requests than a single process would: use
 * counts from the time it happened, leases count in full, and a lease that is not returned by its end counts as used at
 * that time.
 * @param states those of the limits of the request, in order
 * @param now the time of the clock that all requests share, in microseconds since 1970
 * @returns the states afterwards, and the grant
 */
export function grantLease(
  states: readonly LimitState[],
  { holder, turn, used, limits, waiting, ahead, lifeUs }: LeaseRequest,
  now: number,
): { states: LimitState[]; grant: LeaseGrant } {
  const known = states.flatMap(({ leases }) => leases.filter((lease) => lease.holder === holder));
  const [isLate, isAgain] = [known.some((lease) => lease.turn > turn), known.some((lease) => lease.turn === turn)];
  const settled = limits.map(({ limit, unusedAt, weight = 1 }, index) => {
    const rate = computeRate(limit);
    const last = { holder, used: used * weight, unusedAt };
    const before = resized(states[index]!, limit, now);
    const state = expired(isLate || isAgain ? before : settledBy(last, before, rate, now), rate, now);
    const leased = state.leases.reduce((sum, { count }) => sum + count, 0);
    return { rate, state, weight, leased, room: Math.max(available(state.unusedAt, now, rate) - leased, 0) };
  });
  const granted = isLate ? 0 : Math.min(waiting, ...settled.map(({ room, weight }) => Math.floor(room / weight)));
  const more = settled.map(({ rate, state, room, weight }) => leasable(rate, room - granted * weight, state) / weight);
  const isNew = !isLate && !isAgain;
  const own = ({ leases }: LimitState) => leases.find((lease) => lease.holder === holder && lease.turn === turn);
  const count = isNew
    ? Math.floor(Math.min(ahead, ...more))
    : Math.min(...settled.map(({ state, weight }) => (own(state)?.count ?? 0) / weight));
  const endsAt = now + Math.min(lifeUs, MAX_LIFE_US) + GRACE;
  const after = settled.map(({ rate, state, weight }) => ({
    ...state,
    unusedAt: spend(state.unusedAt, now, granted * weight, rate),
    leases: isNew && count > 0 ? [...state.leases, { holder, turn, count: count * weight, endsAt }] : state.leases,
  }));
  const told = after.map(({ unusedAt }, index) => ({ unusedAt, leased: settled[index]!.leased }));
  return { states: after, grant: { now, granted, ahead: count, limits: told } };
}

/**
 * Converts a state to a changed limit: the number of used requests stays the same. It is capped at the whole limit,
 * which it could exceed if the clock was set back.
 */
function resized({ count: before, unusedAt, leases }: LimitState, limit: Limit, now: number): LimitState {
  const { count, unit } = splitLimit(limit);
  const rate = computeRate(limit);
  const used = Math.max(unusedAt - now, 0) / computeRate(`${before}/${unit}`).intervalUs;
  // A budget keeps the amount spent, even beyond its present size.
  const same = isBudget(limit) || (before === count && used <= count);
  return {
    count,
    unusedAt: same ? unusedAt : now + Math.ceil(Math.min(used, count) * rate.intervalUs),
    leases: leases.map((lease) => ({ ...lease, endsAt: Math.min(lease.endsAt, now + MAX_LIFE_US + GRACE) })),
  };
}

/**
 * Ends the last lease of a holder. Without one, its lease has counted as used already. A holder's report is capped by
 * its lease and by the present time.
 */
function settledBy(
  { holder, used, unusedAt }: { holder: string; used: number; unusedAt: number },
  state: LimitState,
  { intervalUs, refills }: Rate,
  now: number,
): LimitState {
  const leases = state.leases.filter((lease) => lease.holder !== holder);
  if (leases.length === state.leases.length) return state;
  const leased = state.leases.reduce((sum, lease) => (lease.holder === holder ? sum + lease.count : sum), 0);
  const usedUs = Math.min(used, leased) * intervalUs;
  const latest = (refills ? now : 0) + usedUs;
  return {
    ...state,
    unusedAt: usedUs > 0 ? Math.max(state.unusedAt + usedUs, Math.min(unusedAt, latest)) : state.unusedAt,
    leases,
  };
}

/** Counts leases that were not returned as used. */
function expired(state: LimitState, rate: Rate, now: number): LimitState {
  const over = state.leases.filter(({ endsAt }) => endsAt <= now);
  if (over.length === 0) return state;
  const inOrder = over.toSorted((one, other) => one.endsAt - other.endsAt);
  return {
    ...state,
    unusedAt: inOrder.reduce((unusedAt, { endsAt, count }) => spend(unusedAt, endsAt, count, rate), state.unusedAt),
    leases: state.leases.filter(({ endsAt }) => endsAt > now),
  };
}

/** The amount that can be leased from what is left. */
function leasable({ burst, intervalUs, refills }: Rate, left: number, { leases }: LimitState): number {
  if (leases.length >= MAX_LEASES) return 0;
  if (!refills) return Math.min(left / 2, burst * LARGEST_PART_OF_BUDGET);
  return Math.min(left, Math.max(left / 2, DRIP_US / intervalUs), burst * LARGEST_PART);
}

/** The shared use of limits among the processes of a store. */
export interface LimitStore {
  /**
   * Grants lease requests in one transaction, one after another, like `grantLease`.
   * @returns the grants in the order of the requests; undefined for a request whose key was deleted
   * @throws KeysError STORE_…, as a rejection
   */
  lease(requests: readonly LeaseRequest[]): Promise<(LeaseGrant | undefined)[]>;
}
