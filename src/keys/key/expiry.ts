import type { Fault } from '../errors.ts';
import { printable } from '../text.ts';

/** When a key is to end, as the user wrote it: after a duration, at a date, or never (null). */
export interface ExpiryRequest {
  /** A number with a unit: `90m`, `12h`, `30d`. */
  expiresIn?: string | undefined;
  /** A date and time by RFC 3339. */
  expiresAt?: string | null | undefined;
}

/** Milliseconds in each unit of a duration. */
const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
/** Ten years: a key that is to live longer needs no end. */
const LONGEST = 3653 * UNITS.d;
const DURATION = /^(\d{1,9})([smhdw])$/i;
/** A date and time by RFC 3339. That there is such a day is seen by `readDate`. */
export const DATE = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d+)?)([Zz]|[+-]\d\d:\d\d)$/;

/** Reads a duration such as `90m` into milliseconds; nothing where it has another form or is nothing at all. */
export function readDuration(text: string): number | undefined {
  const [, count, unit] = DURATION.exec(text.trim()) ?? [];
  if (count === undefined || unit === undefined || Number(count) === 0) return undefined;
  return Number(count) * UNITS[unit.toLowerCase() as keyof typeof UNITS];
}

/** Reads a date and time by RFC 3339 into milliseconds since 1970; nothing where there is no such day or time. */
export function readDate(text: string): number | undefined {
  const [, day, time, offset] = DATE.exec(text.trim()) ?? [];
  if (day === undefined || time === undefined || offset === undefined) return undefined;
  const instant = Date.parse(`${day}T${time}${offset.toUpperCase()}`);
  // Date.parse takes the 30th of February for the 2nd of March.
  const sameDay = new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day);
  return Number.isNaN(instant) || !sameDay ? undefined : instant;
}

/** Reads when a key is to end: milliseconds since 1970, null for never, or what is wrong with it. */
export function readExpiry({ expiresIn, expiresAt }: ExpiryRequest, now: number): number | null | Fault {
  if (expiresIn !== undefined && expiresAt !== undefined)
    return fault('A key ends after a duration or at a date, not both.');
  if (expiresIn !== undefined) {
    const duration = readDuration(expiresIn);
    if (duration === undefined)
      return fault(
        `"${printable(expiresIn)}" is not a duration. Write a number with s, m, h, d or w, such as 90m, 12h or 30d.`,
      );
    return within(now + duration, now, expiresIn);
  }
  if (expiresAt === undefined || expiresAt === null) return null;
  const instant = readDate(expiresAt);
  if (instant === undefined)
    return fault(`"${printable(expiresAt)}" is not a date and time by RFC 3339, such as 2030-12-31T23:59:59Z.`);
  if (instant <= now) return fault(`"${printable(expiresAt)}" is in the past. Choose a later date.`);
  return within(instant, now, expiresAt);
}

/** When a key is to end, by a request that was checked; nothing where it does not say. */
export function expiryOf(request: ExpiryRequest, now: number): number | null | undefined {
  if (request.expiresIn === undefined && request.expiresAt === undefined) return undefined;
  return readExpiry(request, now) as number | null;
}

/** What is wrong with a request, if anything is. */
export function expiryFaults(request: ExpiryRequest, now: number): Fault[] {
  const read = readExpiry(request, now);
  return typeof read === 'object' && read !== null ? [read] : [];
}

function within(instant: number, now: number, text: string): number | Fault {
  return instant - now <= LONGEST
    ? instant
    : fault(`"${printable(text)}" is more than ten years away. Choose an earlier end, or none.`);
}

function fault(message: string): Fault {
  return { code: 'EXPIRY_INVALID', message };
}
