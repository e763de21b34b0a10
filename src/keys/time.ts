import { KeysError } from './errors.ts';
import { parseUnit } from './limit.ts';
import { printable } from './text.ts';

/** Milliseconds in each unit of a duration. */
export const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
const DURATION = /^(\d{1,9})([smhdw])$/;
/** An RFC 3339 date and time, without leap seconds. Whether that day exists is checked by `readDate`. */
export const DATE =
  /^(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?)([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Parses a duration such as `90m` into milliseconds; undefined if it is malformed or zero. Units are lower case. */
export function readDuration(text: string): number | undefined {
  const match = DURATION.exec(text.trim());
  if (!match || Number(match[1]) === 0) return undefined;
  return Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
}

/** What to write in place of a duration with another unit, such as `1y` or `12H`; otherwise undefined. */
export function durationHint(text: string): string | undefined {
  const match = /^(\d{1,9})[ -]?([a-z]+)$/i.exec(text.trim());
  const unit = parseUnit(match?.[2] ?? '');
  if (!match || !unit || Number(match[1]) === 0) return undefined;
  if (match[2] === unit && unit in UNIT_MS) return undefined;
  const [number, written] = [Number(match[1]), match[2]!];
  if (written === 'M') {
    const minutes = `${number} ${number === 1 ? 'minute' : 'minutes'}`;
    return `Units are lower case: ${number}m is ${minutes}; for months write ${number * 30}d.`;
  }
  if (written === unit.toUpperCase()) return `Units are lower case: write ${number}${unit}.`;
  const days = { month: 30, year: 365 };
  const meant = unit in days ? `${number * days[unit as keyof typeof days]}d` : `${number}${unit}`;
  return `Did you mean ${meant}? The units are s, m, h, d and w.`;
}

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

/** A duration in milliseconds in its largest unit that is whole, as `readDuration` parses it: `90m`, `1h`, `30d`. */
export function formatDuration(milliseconds: number): string {
  const [unit, length] = (['d', 'h', 'm'] as const)
    .map((name) => [name, UNIT_MS[name]] as const)
    .find(([, each]) => milliseconds >= each && milliseconds % each === 0) ?? ['s', UNIT_MS.s];
  return `${milliseconds / length}${unit}`;
}
