/** Milliseconds in each unit of a duration. */
export const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
const DURATION = /^(\d{1,9})([smhdw])$/i;
/** A date and time by RFC 3339. That there is such a day is seen by `readDate`. */
export const DATE = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d+)?)([Zz]|[+-]\d\d:\d\d)$/;

/** Reads a duration such as `90m` into milliseconds; nothing where it has another form or is nothing at all. */
export function readDuration(text: string): number | undefined {
  const [, count, unit] = DURATION.exec(text.trim()) ?? [];
  if (count === undefined || unit === undefined || Number(count) === 0) return undefined;
  return Number(count) * UNIT_MS[unit.toLowerCase() as keyof typeof UNIT_MS];
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

/** A time in milliseconds since 1970 as RFC 3339 has it, in UTC. */
export function formatTime(instant: number): string;
export function formatTime(instant: number | null): string | null;
export function formatTime(instant: number | null): string | null {
  return instant === null ? null : new Date(instant).toISOString();
}
