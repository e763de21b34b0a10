import { UNIT_MS } from '../time.ts';

/** How long after an attempt that failed the next one is made, as Standard Webhooks proposes. */
export const RETRY_MS = [
  5 * UNIT_MS.s,
  5 * UNIT_MS.m,
  30 * UNIT_MS.m,
  2 * UNIT_MS.h,
  5 * UNIT_MS.h,
  10 * UNIT_MS.h,
  10 * UNIT_MS.h,
] as const;
/** Each wait is shorter or longer by up to this part of it, so that those that failed together do not return so. */
const JITTER = 0.2;

/**
 * When the next attempt is due, in milliseconds since 1970; undefined to give up.
 * @param attempts how many were made
 * @param random from 0 up to 1
 */
export function nextAttempt(attempts: number, now: number, random: number): number | undefined {
  const wait = RETRY_MS[attempts - 1];
  return wait === undefined ? undefined : Math.round(now + wait * (1 - JITTER + 2 * JITTER * random));
}
