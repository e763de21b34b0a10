import {
  durationHint,
  type Issue,
  missingDay,
  printable,
  readDate,
  readDay,
  readDuration,
  UNIT_MS,
} from '../basics/index.ts';

/** The requested expiry, as the user wrote it: after a duration, at a date, or never (null). */
export interface ExpiryRequest {
  /** A number with a unit: `90m`, `12h`, `30d`. */
  expiresIn?: string;
  /** An RFC 3339 date and time, or a date. */
  expiresAt?: string | Date | null;
}

/** Ten years. A key for longer needs no expiry. */
export const MAX_DURATION_MS = 3653 * UNIT_MS.d;

/** Parses an expiry: milliseconds since 1970, null for never, or an issue. */
export function readExpiry({ expiresIn, expiresAt }: ExpiryRequest, now: number): number | null | Issue {
  if (expiresIn !== undefined && expiresAt !== undefined)
    return expiryIssue('A key expires after a duration or at a date, not both.');
  if (expiresIn !== undefined) {
    const duration = readDuration(expiresIn);
    if (duration === undefined) {
      const remedy = durationHint(expiresIn) ?? 'Write a number with s, m, h, d or w, such as 90m, 12h or 30d.';
      return expiryIssue(`"${printable(expiresIn)}" is not a duration. ${remedy}`);
    }
    return withinLimit(now + duration, now, expiresIn);
  }
  if (expiresAt === undefined || expiresAt === null) return null;
  const text = expiresAt instanceof Date ? textOfDate(expiresAt) : expiresAt;
  const instant = readDate(text);
  if (instant === undefined) return expiryIssue(notADate(text));
  if (instant <= now) return expiryIssue(`"${printable(text)}" is in the past. Choose a later date.`);
  return withinLimit(instant, now, text);
}

function textOfDate(date: Date): string {
  return Number.isNaN(date.getTime()) ? String(date) : date.toISOString();
}

/** An expiry that is written in one text: a date and time, or a duration. */
export function expiryIn(text: string): ExpiryRequest {
  return /^\s*\d{4}-/.test(text) ? { expiresAt: text } : { expiresIn: text };
}

/** The expiry in a validated request; undefined if it names none. */
export function expiryOf(request: ExpiryRequest, now: number): number | null | undefined {
  if (request.expiresIn === undefined && request.expiresAt === undefined) return undefined;
  return readExpiry(request, now) as number | null;
}

/** The issue with the expiry in a request, if there is one. */
export function validateExpiry(request: ExpiryRequest, now: number): Issue[] {
  const read = readExpiry(request, now);
  return typeof read === 'object' && read !== null ? [read] : [];
}

function withinLimit(instant: number, now: number, text: string): number | Issue {
  return instant - now <= MAX_DURATION_MS
    ? instant
    : expiryIssue(`"${printable(text)}" is more than ten years away. Choose an earlier date, or none.`);
}

/** Explains a text that `readDate` cannot parse. A date alone leaves open whether that day is included. */
export function notADate(text: string): string {
  const day = text.trim();
  if (readDay(day) !== undefined)
    return `"${day}" has no time. Write ${day}T00:00:00Z for its start in UTC, or ${day}T23:59:59Z for its end.`;
  const shown = `"${printable(text)}"`;
  const problem = missingDay(day);
  const what = `${shown} is not an RFC 3339 date and time`;
  return problem === undefined ? `${what}, such as 2030-12-31T23:59:59Z.` : `${what}. ${problem}`;
}

function expiryIssue(message: string): Issue {
  return { code: 'EXPIRY_INVALID', message };
}
