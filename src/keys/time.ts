/** Milliseconds in each unit of a duration. */
export const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
const DURATION = /^(\d{1,9})([smhdw])$/i;
/** An RFC 3339 date and time. Whether that day exists is checked by `readDate`. */
export const DATE = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d+)?)([Zz]|[+-]\d\d:\d\d)$/;

/** Parses a duration such as `90m` into milliseconds; undefined if it is malformed or zero. */
export function readDuration(text: string): number | undefined {
  const [, count, unit] = DURATION.exec(text.trim()) ?? [];
  if (count === undefined || unit === undefined || Number(count) === 0) return undefined;
  return Number(count) * UNIT_MS[unit.toLowerCase() as keyof typeof UNIT_MS];
}

/** Parses an RFC 3339 date and time into milliseconds since 1970; undefined if it is malformed or does not exist. */
export function readDate(text: string): number | undefined {
  const [, day, time, offset] = DATE.exec(text.trim()) ?? [];
  if (day === undefined || time === undefined || offset === undefined) return undefined;
  const instant = Date.parse(`${day}T${time}${offset.toUpperCase()}`);
  // Date.parse reads 30 February as 2 March.
  const sameDay = new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day);
  return Number.isNaN(instant) || !sameDay ? undefined : instant;
}

/** Parses a date and time, or how long ago, such as `24h`, into milliseconds since 1970; undefined if it is neither. */
export function readPastTime(text: string, now: number): number | undefined {
  const ago = readDuration(text);
  return ago === undefined ? readDate(text) : now - ago;
}

/** Formats a time in milliseconds since 1970 by RFC 3339, in UTC. */
export function formatTime(instant: number): string;
export function formatTime(instant: number | null): string | null;
export function formatTime(instant: number | null): string | null {
  return instant === null ? null : new Date(instant).toISOString();
}
