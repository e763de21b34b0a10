import { durationHint, readDuration } from './duration.ts';
import { KeysError } from './errors.ts';
import { printable } from './text.ts';

/** An RFC 3339 date and time, without leap seconds. Whether that day exists is checked by `readDate`. */
export const DATE =
  /^(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?)([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Why there is no such day, of a text that begins with a date that does not exist; otherwise undefined. */
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

/** Parses a date without a time into its first instant in UTC, in milliseconds since 1970; undefined if it is none. */
export function readDay(text: string): number | undefined {
  return readDate(`${text.trim()}T00:00:00Z`);
}

/**
 * Parses a date and time, a date alone, which is its first instant in UTC, or how long ago, such as `24h`, into
 * milliseconds since 1970; undefined if it is none of them.
 */
export function readPastTime(text: string, now: number): number | undefined {
  const ago = readDuration(text);
  return ago === undefined ? (readDate(text) ?? readDay(text)) : now - ago;
}

/** The same for a time that must be one. @throws KeysError INPUT_INVALID */
export function requirePastTime(text: string, now: number): number {
  const time = readPastTime(text, now);
  if (time !== undefined) return time;
  throw new KeysError('INPUT_INVALID', `"${printable(text)}" is not a time. ${pastTimeRemedy(text)}`);
}

/**
 * What is wrong with a time since which something is to be undone: one in the future would undo nothing. Up to a
 * minute, it is that of a machine whose clock is ahead.
 * @returns a sentence; undefined if nothing is wrong
 */
export function notPassed(text: string, time: number, now: number): string | undefined {
  if (time <= now + MAX_SKEW_MS) return undefined;
  return `"${printable(text)}" is in the future. Write a time that has passed.`;
}

/** The same as `requirePastTime`, for such a time. @throws KeysError INPUT_INVALID */
export function requirePassedTime(text: string, now: number): number {
  const time = requirePastTime(text, now);
  const problem = notPassed(text, time, now);
  if (problem === undefined) return time;
  throw new KeysError('INPUT_INVALID', problem);
}

/** What to write in place of a text that `readPastTime` cannot parse. */
export function pastTimeRemedy(text: string): string {
  return (
    durationHint(text) ??
    missingDay(text) ??
    'Write a date, such as 2030-12-31, an RFC 3339 date and time, such as 2030-12-31T23:59:59Z, or an age, such as 24h.'
  );
}

/** The first and the last instant that RFC 3339 can tell, in milliseconds since 1970: of the years 0000 and 9999. */
export const [FIRST_MS, LAST_MS] = [Date.parse('0000-01-01T00:00:00.000Z'), Date.parse('9999-12-31T23:59:59.999Z')];

/** Whether a number is a time, in milliseconds since 1970, that can be told by RFC 3339. */
export function isTime(instant: number): boolean {
  return Number.isInteger(instant) && instant >= FIRST_MS && instant <= LAST_MS;
}

/**
 * A time that RFC 3339 can tell: what is none, in a damaged row, becomes the first or the last one. A list must not
 * fail for one key.
 */
export function clampTime(instant: number): number {
  return Number.isNaN(instant) ? FIRST_MS : Math.min(Math.max(instant, FIRST_MS), LAST_MS);
}

/** Formats a time in milliseconds since 1970, made `clampTime`, by RFC 3339 in UTC. */
export function formatTime(instant: number): string;
export function formatTime(instant: number | null): string | null;
export function formatTime(instant: number | null): string | null {
  return instant === null ? null : new Date(clampTime(instant)).toISOString();
}

/** How far apart the clocks of machines may be, in milliseconds: they are adjusted by seconds. */
export const MAX_SKEW_MS = 60_000;
