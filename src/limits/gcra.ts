import { type Limit, LIMIT_SECONDS, splitLimit } from '../keys/limit.ts';

/**
 * A limit in the terms of the generic cell rate algorithm (GCRA, ITU-T I.371): `burst` requests at once, then one each
 * `interval`, in microseconds. So of a limit of n in a time, any span of s microseconds has at most n + s / interval.
 *
 * What was used up of it is one number: the time at which it is unused again, which each request moves on by one
 * interval. That is at most `burst` intervals away.
 */
export interface Rate {
  readonly burst: number;
  readonly interval: number;
}

/** The rate of a limit. A part of a microsecond counts as a whole one. */
export function rateOf(limit: Limit): Rate {
  const { count, unit } = splitLimit(limit);
  return { burst: count, interval: Math.ceil((LIMIT_SECONDS[unit] * 1_000_000) / count) };
}

/** When a limit is unused again after so many more requests. All times are in microseconds, by one clock. */
export function spend(unusedAt: number, now: number, count: number, { interval }: Rate): number {
  return count === 0 ? unusedAt : Math.max(unusedAt, now) + count * interval;
}

/** How many requests may be made now. */
export function available(unusedAt: number, now: number, rate: Rate): number {
  const used = Math.max(unusedAt - now, 0);
  return Math.max(Math.floor((rate.burst * rate.interval - used) / rate.interval), 0);
}

/** The earliest time at which so many requests may be made. */
export function availableAt(unusedAt: number, count: number, { burst, interval }: Rate): number {
  return unusedAt - (burst - count) * interval;
}
