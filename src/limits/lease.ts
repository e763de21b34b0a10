import type { AppliedLimit } from '../keys/authorization/index.ts';
import {
  checkOptions,
  count,
  isBudget,
  type Limit,
  LIMIT_SECONDS,
  list,
  options,
  parseLimits,
  required,
  type Rule,
  splitLimit,
  text,
  uuid,
} from '../keys/basics/index.ts';

/**
 * A limit in the terms of the generic cell rate algorithm (GCRA, ITU-T I.371): `burst` requests at once, then one each
 * `interval`, in microseconds. So of a limit of n in a time, any span of s microseconds has at most n + s / interval.
 *
 * What was used up of it is one number: the time at which it is unused again, which each request moves on by one
 * interval. That is at most `burst` intervals away.
 *
 * A budget is the same where time stands still at 0: its number is how much is spent.
 */
export interface Rate {
  readonly burst: number;
  readonly intervalUs: number;
  /** Whether something becomes available again, which is not so for budgets. */
  readonly refills: boolean;
}

/** The rate of a limit. A part of a microsecond counts as a whole one. */
export function computeRate(limit: Limit): Rate {
  const { count, unit } = splitLimit(limit);
  const seconds = unit in LIMIT_SECONDS ? LIMIT_SECONDS[unit as keyof typeof LIMIT_SECONDS] : undefined;
  return seconds === undefined
    ? { burst: count, intervalUs: 1, refills: false }
    : { burst: count, intervalUs: Math.ceil((seconds * 1_000_000) / count), refills: true };
}

/** When a limit is unused again after so many more requests. All times are in microseconds, by one clock. */
export function spend(unusedAt: number, now: number, count: number, { intervalUs, refills }: Rate): number {
  return count === 0 ? unusedAt : Math.max(unusedAt, refills ? now : 0) + count * intervalUs;
}

/** How many requests may be made now. */
export function available(unusedAt: number, now: number, rate: Rate): number {
  const used = Math.max(unusedAt - (rate.refills ? now : 0), 0);
  return Math.max(Math.floor((rate.burst * rate.intervalUs - used) / rate.intervalUs), 0);
}

/** The earliest time at which so many requests may be made; Infinity for never. */
export function availableAt(unusedAt: number, count: number, { burst, intervalUs, refills }: Rate): number {
  const time = unusedAt - (burst - count) * intervalUs;
  return refills || time <= 0 ? time : Infinity;
}

/** Requests that a process has taken in advance, and may accept until an end, in microseconds of the store's clock. */
export interface Lease {
  readonly holder: string;
  /** See `LeaseRequest`. */
  readonly turn: number;
  readonly count: number;
  readonly endsAt: number;
}

/** How far a limit of a key is used up, in the terms of `Rate`, and what of it is leased beside that. */
export interface LimitState {
  /** The number of the limit that this was written for. */
  readonly count: number;
  readonly unusedAt: number;
  readonly leases: readonly Lease[];
}

/** A limit that requests count against, and how the last lease of it was used. */
export interface LeasedLimit extends AppliedLimit {
  /** When the limit would be unused again if nothing else had been used of it; 0 if nothing was. */
  readonly unusedAt: number;
}

/** What a process asks for, of all limits that the same requests count against. */
export interface LeaseRequest {
  /** Whose lease it is. The last one ends with this request: what is left of it is given back. */
  readonly holder: string;
  /** Which of its requests this is: what arrives again, or late, changes nothing of a lease that was granted since. */
  readonly turn: number;
  /** How many requests the last lease has accepted. */
  readonly used: number;
  readonly limits: readonly LeasedLimit[];
  readonly waiting: number;
  /** How many more are likely to follow within `life`, in microseconds: so long the lease can be used. */
  readonly ahead: number;
  readonly lifeUs: number;
}

const isLimit: Rule<Limit> = (value, name) => text(value, name) ?? parseLimits([value as string]).issues[0]?.message;

/** The longest name of a holder, or of a route: both are kept with the limit. */
const MAX_NAME = 100;
const isName: Rule<string> = (value, name) =>
  text(value, name) ?? ((value as string).length > MAX_NAME ? `has more than ${MAX_NAME} characters.` : undefined);
const isNumber: Rule<number> = (value, name) =>
  count(value, name) ?? (Number.isSafeInteger(value) ? undefined : 'is too large.');

const REQUESTS = list(
  options<LeaseRequest>({
    holder: required(isName),
    turn: required(isNumber),
    used: required(isNumber),
    limits: required(
      list(
        options<LeasedLimit>({
          keyId: required(uuid),
          limit: required(isLimit),
          route: isName,
          weight: isNumber,
          unusedAt: required(isNumber),
        }),
        1,
      ),
    ),
    waiting: required(isNumber),
    ahead: required(isNumber),
    lifeUs: required(isNumber),
  }),
);

/** Reads what another process asks for. @throws KeysError OPTION_INVALID */
export function readLeaseRequests(given: unknown): readonly LeaseRequest[] {
  checkOptions('The leases', { requests: given }, { requests: required(REQUESTS) });
  return given as LeaseRequest[];
}

export interface LeaseGrant {
  /** The time of the store's clock, in microseconds since 1970. */
  readonly now: number;
  readonly granted: number;
  /** How many more the process may accept. */
  readonly ahead: number;
  /** For each limit, how far it is used up without those, and how much others have leased. */
  readonly limits: readonly { readonly unusedAt: number; readonly leased: number }[];
}

/** The longest life of a lease, in microseconds. */
export const MAX_LIFE_US = 10_000_000;
/** How much longer the store counts a lease as such, in which its holder gives back what is left. */
const GRACE = 1_000_000;
/** Nobody leases more than this part of a limit, so that small limits are not leased at all. */
const LARGEST_PART = 1 / 10;
/** The same of a budget: what gets lost of it never comes back, and people are told what is left. */
const LARGEST_PART_OF_BUDGET = 1 / 1000;
/** Of what is left, half can be leased, or what becomes available in this time, in microseconds. */
const DRIP_US = 100_000;
/** The most leases of one limit at a time. */
const MAX_LEASES = 256;

/**
 * Grants what it can of a request. Over all processes, no more requests are accepted than one process would accept that
 * gets all of them at the same times: what was used counts from when it was, what is leased counts in full, and what
 * was not given back by its end counts as used at that end.
 * @param states those of the limits of the request, in their order
 * @param now the time of the one clock that all requests go by, in microseconds since 1970
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
 * The state for the number that a limit has now: what was used is as many requests as before. It is no more than all,
 * which it would be where the clock was set back.
 */
function resized({ count: before, unusedAt, leases }: LimitState, limit: Limit, now: number): LimitState {
  const { count, unit } = splitLimit(limit);
  const rate = computeRate(limit);
  const used = Math.max(unusedAt - now, 0) / computeRate(`${before}/${unit}`).intervalUs;
  // A budget keeps what was spent, also beyond what it is now.
  const same = isBudget(limit) || (before === count && used <= count);
  return {
    count,
    unusedAt: same ? unusedAt : now + Math.ceil(Math.min(used, count) * rate.intervalUs),
    leases: leases.map((lease) => ({ ...lease, endsAt: Math.min(lease.endsAt, now + MAX_LIFE_US + GRACE) })),
  };
}

/**
 * Ends the last lease of a holder. Where there is none, it has counted as used already. No holder has used more than it
 * leased, nor used it later than now.
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
  const spentUs = Math.min(used, leased) * intervalUs;
  const latest = (refills ? now : 0) + spentUs;
  return {
    ...state,
    unusedAt: spentUs > 0 ? Math.max(state.unusedAt + spentUs, Math.min(unusedAt, latest)) : state.unusedAt,
    leases,
  };
}

/** Counts the leases as used that were not given back. */
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

/** How much may be leased where so much is left. */
function leasable({ burst, intervalUs, refills }: Rate, left: number, { leases }: LimitState): number {
  if (leases.length >= MAX_LEASES) return 0;
  if (!refills) return Math.min(left / 2, burst * LARGEST_PART_OF_BUDGET);
  return Math.min(left, Math.max(left / 2, DRIP_US / intervalUs), burst * LARGEST_PART);
}

/** Where the processes of a store share what is used of limits. */
export interface LimitStore {
  /**
   * Grants requests for leases in one transaction, one after another, as `grantLease` does.
   * @returns the grants in the order of the requests; undefined for one whose limits are of a key that is gone
   * @throws KeysError STORE_…, as a rejection
   */
  lease(requests: readonly LeaseRequest[]): Promise<(LeaseGrant | undefined)[]>;
}
