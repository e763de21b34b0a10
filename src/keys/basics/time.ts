import { durationHint, readDuration } from './duration.ts';
import { KeysError } from './errors.ts';
import { printable } from './text.ts';

/** An RFC 3339 date and time, without leap seconds. `readDate` checks that the day exists. */
export const DATE =
  /^(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?)([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** The reason why a text that begins with a date names no existing day; otherwise undefined. */
export function missingDay(text: string): string | undefined {
  const [, date = '', year, month] = /^\s*((\d{4})-(\d\d)-\d\d)(?!\d)/.exec(text) ?? [];
  if (date === '' || readDay(date) !== undefined) return undefined;
  if (Number(month) < 1 || Number(month) > 12) return `There is no day ${date}: a year has the months 01 to 12.`;
  const last = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return `There is no day ${date}: ${year}-${month} has the days 01 to ${last}.`;
}

/** Parses an RFC 3339 date and time into milliseconds since 1970; undefined if it is malformed or does not exist. */
export function readDate(text: string): number | undefined {
  const match = DATE.exec(text.trim());
  if (!match) return undefined;
  const [day, time, offset] = [match[1]!, match[2]!, match[3]!];
  const instant = Date.parse(`${day}T${time}${offset.toUpperCase()}`);
  // Date.parse reads 30 February as 2 March.
  const sameDay = new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day);
  return Number.isNaN(instant) || !sameDay ? undefined : instant;
}

/**
 * Parses a date without a time into its first instant in UTC, in milliseconds since 1970; undefined if it is malformed.
 */
export function readDay(text: string): number | undefined {
  return readDate(`${text.trim()}T00:00:00Z`);
}

/**
 * Parses a date and time, a date alone (its first instant in UTC), or an age such as `24h` into milliseconds since
 * 1970; undefined for anything else.
 */
export function readPastTime(text: string, now: number): number | undefined {
  const ago = readDuration(text);
  return ago === undefined ? (readDate(text) ?? readDay(text)) : now - ago;
}

/** Like `readPastTime`, but throws. @throws KeysError INPUT_INVALID */
export function requirePastTime(text: string, now: number): number {
  const time = readPastTime(text, now);
  if (time !== undefined) return time;
  throw new KeysError('INPUT_INVALID', `"${printable(text)}" is not a time. ${pastTimeRemedy(text)}`);
}

/**
 * The problem with a time since which changes are to be undone: one in the future would undo nothing. A minute of
 * tolerance allows for a machine whose clock is ahead.
 * @returns a sentence; undefined if there is no problem
 */
export function notPassed(text: string, time: number, now: number): string | undefined {
  if (time <= now + MAX_SKEW_MS) return undefined;
  return `"${printable(text)}" is in the future. Write a time that has passed.`;
}

/** The remedy for a text that `readPastTime` cannot parse. */
export function pastTimeRemedy(text: string): string {
  return (
    durationHint(text) ??
    missingDay(text) ??
    'Write a date, such as 2030-12-31, an RFC 3339 date and time, such as 2030-12-31T23:59:59Z, or an age, such as 24h.'
  );
}

/** The first and the last instant in RFC 3339, in milliseconds since 1970: years 0000 to 9999. */
export const [FIRST_MS, LAST_MS] = [Date.parse('0000-01-01T00:00:00.000Z'), Date.parse('9999-12-31T23:59:59.999Z')];

/** True for milliseconds since 1970 that RFC 3339 can represent. */
export function isTime(instant: number): boolean {
  return Number.isInteger(instant) && instant >= FIRST_MS && instant <= LAST_MS;
}

/**
 * A time that RFC 3339 can represent: other values, from a damaged row, become the first or the last one, so that a
 * list does not fail because of one key.
 */
export function clampTime(instant: number): number {
  return Number.isNaN(instant) ? FIRST_MS : Math.min(Math.max(instant, FIRST_MS), LAST_MS);
}

/** Formats a time in milliseconds since 1970 by RFC 3339 in UTC, clamped by `clampTime`. */
export function formatTime(instant: number): string;
export function formatTime(instant: number | null): string | null;
export function formatTime(instant: number | null): string | null {
  return instant === null ? null : new Date(clampTime(instant)).toISOString();
}

/** The largest difference expected between the clocks of two machines, in milliseconds. */
export const MAX_SKEW_MS = 60_000;
