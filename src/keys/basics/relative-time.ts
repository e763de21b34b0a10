import { clampTime, formatTime } from './time.ts';

const DAY = 86_400_000;
/** Each unit with its length, and the shortest distance shown in it, in milliseconds. */
const UNITS = [
  { unit: 'year', length: 365 * DAY, from: 365 * DAY },
  { unit: 'month', length: 30 * DAY, from: 100 * DAY },
  { unit: 'day', length: DAY, from: DAY },
  { unit: 'hour', length: 3_600_000, from: 3_600_000 },
  { unit: 'minute', length: 60_000, from: 60_000 },
  { unit: 'second', length: 1000, from: 0 },
] as const;
/** The largest error of a rounded number, relative to the exact one. */
const TOLERANCE = 0.1;

/**
 * The distance of a time, such as "2 minutes ago", "in 30 days", "now". Uses the largest unit in which the rounded
 * number is close enough: "in 90 minutes". Out-of-range times are clamped by `clampTime`.
 */
export function relativeTime(time: number, now = Date.now()): string {
  const seconds = Math.round((clampTime(time) - now) / 1000);
  if (seconds === 0) return 'now';
  const distance = Math.abs(seconds) * 1000;
  const { unit, length } = UNITS.find(
    ({ length: each, from }) =>
      distance >= from && Math.abs(Math.round(distance / each) * each - distance) <= distance * TOLERANCE,
  )!;
  const count = Math.round(distance / length);
  const text = `${count} ${unit}${count === 1 ? '' : 's'}`;
  return seconds < 0 ? `${text} ago` : `in ${text}`;
}

/** A time in RFC 3339 format, followed by the relative one: "2030-01-31T00:00:00.000Z (in 30 days)". */
export function timeAndDistance(time: number, now?: number): string {
  return `${formatTime(time)} (${relativeTime(time, now)})`;
}
