import { UNIT_MS } from '../time.ts';
import type { OutcomeCounts } from './outcomes.ts';

/** By what use is counted, in UTC. */
export const PERIODS = ['HOUR', 'DAY'] as const;

/** An hour or a day in UTC. */
export type Period = (typeof PERIODS)[number];

/** Their lengths in milliseconds. */
export const PERIOD_MS: Readonly<Record<Period, number>> = { HOUR: UNIT_MS.h, DAY: UNIT_MS.d };

/** How long use is kept by each, in days: then hours become days, and days are removed. */
export const KEPT_DAYS: Readonly<Record<Period, number>> = { HOUR: 90, DAY: 730 };

/** How requests with the secrets of a key ended in an hour or on a day. */
export interface PeriodUsage extends OutcomeCounts {
  /** When it began, in milliseconds since 1970. */
  start: number;
}

/** Whole hours or days, from one on and before another. */
export interface UsageRange {
  by: Period;
  /** The start of the first one, in milliseconds since 1970. */
  from: number;
  /** The end of the last one. */
  to: number;
}

/** The hours or days of a range in which there were requests, in their order. */
export interface UsageByPeriod extends UsageRange {
  periods: readonly PeriodUsage[];
}

/** The start of the hour or day that a time is in, in milliseconds since 1970. */
export function startOf(period: Period, time: number): number {
  return Math.floor(time / PERIOD_MS[period]) * PERIOD_MS[period];
}

/** The start of the first hour or day that is kept at a time, which is a whole day. */
export function firstKept(period: Period, now: number): number {
  return startOf('DAY', now) - KEPT_DAYS[period] * UNIT_MS.d;
}
