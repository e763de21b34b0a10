import { type Issue, KeysError } from './errors.ts';
import { declarePort } from './networks.ts';
import { formatList, printable } from './values.ts';

/** The seconds of each unit of a rate limit, shortest first. A month has 30 days. */
export const LIMIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86_400, month: 2_592_000 } as const;
/** Of what never becomes available again: a budget counts what requests cost, uses count requests. */
export const BUDGET_UNITS = ['budget', 'uses'] as const;
type RateUnit = keyof typeof LIMIT_SECONDS;
/** One of `s`, `m`, `h`, `d` and `month`, or of budgets. */
export type LimitUnit = RateUnit | (typeof BUDGET_UNITS)[number];
/** How many requests a key may make in a time, such as `100/m`, or at all, such as `1000/budget` and `1/uses`. */
export type Limit = `${number}/${LimitUnit}`;

/** The parts of a limit. */
export interface LimitParts {
  readonly count: number;
  readonly unit: LimitUnit;
}

/** How far a key has used up its limit of a unit, as the store keeps it. */
export interface SpentLimit {
  readonly keyId: string;
  readonly unit: string;
  readonly count: number;
  /** In microseconds since 1970; of a budget, how much is spent. */
  readonly unusedAt: number;
  readonly leases: string;
}

/** How far keys have used up their limits. */
interface SpentLimits {
  find(keyIds: readonly string[]): Promise<SpentLimit[]>;
}
/** The same in a transaction. */
interface SpentLimitsWriter extends SpentLimits {
  /** Lets new keys have used up so much. */
  insert(spent: readonly SpentLimit[]): Promise<void>;
}
/** The port for it. */
export const SPENT_LIMITS = declarePort<SpentLimits, SpentLimitsWriter>('spent limits');

/** A budget of a key, such as `1000/budget`, and how much of it is left. */
export interface Budget {
  readonly limit: Limit;
  readonly left: number;
}

/** The budgets among the limits of a key, with what is left of each. @param spent of all its limits */
export function budgetsOf(key: { id: string; limits: readonly Limit[] }, spent: readonly SpentLimit[]): Budget[] {
  return key.limits.filter(isBudget).map((limit) => {
    const { count, unit } = splitLimit(limit);
    const used = spent.find((each) => each.keyId === key.id && each.unit === unit)?.unusedAt ?? 0;
    return { limit, left: Math.max(count - used, 0) };
  });
}

/** Whether a limit is one that never becomes available again. */
export function isBudget(limit: Limit): boolean {
  return isBudgetUnit(splitLimit(limit).unit);
}

export function isBudgetUnit(unit: string): boolean {
  return BUDGET_UNITS.some((each) => each === unit);
}

/** No limits: one list for all keys that have none. */
export const NO_LIMITS: readonly Limit[] = [];

/** What people write for the units of times, in singular; the value is how they are written here. */
const UNIT_WORDS = {
  s: ['s', 'sec', 'second'],
  m: ['m', 'min', 'minute'],
  h: ['h', 'hr', 'hour'],
  d: ['d', 'day'],
  w: ['w', 'wk', 'week'],
  month: ['mo', 'mon', 'month'],
  year: ['y', 'yr', 'year'],
} as const;

/** The unit that a word means, such as `m` for `Mins`; undefined if it is none. */
function parseUnit(word: string): keyof typeof UNIT_WORDS | undefined {
  const wanted = word.toLowerCase();
  const units = Object.keys(UNIT_WORDS) as (keyof typeof UNIT_WORDS)[];
  return units.find((unit) => UNIT_WORDS[unit].some((each) => wanted === each || wanted === `${each}s`));
}

/** The most requests a second that a limit can allow, in whatever unit: times are counted in microseconds. */
const MAX_PER_SECOND = 10_000;
/** The most that a budget can have: what GraphQL's Int takes. */
const MAX_BUDGET = 2_000_000_000;
const RATE_UNITS = Object.keys(LIMIT_SECONDS) as RateUnit[];
export const LIMIT_UNITS: readonly LimitUnit[] = [...RATE_UNITS, ...BUDGET_UNITS];
const NAMES: Readonly<Record<LimitUnit, string>> = {
  s: 'second',
  m: 'minute',
  h: 'hour',
  d: 'day',
  month: 'month',
  budget: 'budget',
  uses: 'uses',
};
const FORM = /^(\d{1,12}) *\/ *([a-z]{1,9})$/i;
const UNITS_RULE = 'The units are s, m, h, d and month.';
const REMEDY = 'Write a number and s, m, h, d or month, such as 100/m.';

/** The same for limits that are not of one key alone: budgets are none. */
export function parseRates(texts: readonly string[]): { values: Limit[]; issues: Issue[] } {
  return parseLimits(texts, RATE_UNITS);
}

/**
 * Parses limits. One that is given twice counts once; of each unit there is one at most.
 * @returns the valid ones, from the shortest unit to the longest, budgets last, and the issues with the others
 */
export function parseLimits(
  texts: readonly string[],
  units: readonly LimitUnit[] = LIMIT_UNITS,
): { values: Limit[]; issues: Issue[] } {
  const found = new Map<LimitUnit, number>();
  const issues: Issue[] = [];
  for (const text of texts) {
    const read = readLimit(text.trim(), units);
    if (typeof read === 'string') issues.push({ code: 'LIMIT_INVALID', message: read });
    else if ((found.get(read.unit) ?? read.count) === read.count) found.set(read.unit, read.count);
    else {
      const both = formatList([found.get(read.unit)!, read.count].map((count) => `${count}/${read.unit}`));
      const of = isBudgetUnit(read.unit) ? 'of' : 'a';
      const message = `${both} are two limits ${of} ${NAMES[read.unit]}. Leave one of them out.`;
      issues.push({ code: 'LIMIT_INVALID', message });
    }
  }
  const values = LIMIT_UNITS.flatMap((unit): Limit[] => (found.has(unit) ? [`${found.get(unit)!}/${unit}`] : []));
  return { values, issues };
}

/** The parts of a limit that was parsed. */
export function splitLimit(limit: Limit): LimitParts {
  const [count, unit] = limit.split('/') as [string, LimitUnit];
  return { count: Number(count), unit };
}

/** A unit in full: `minute`. */
export function unitName(unit: LimitUnit): string {
  return NAMES[unit];
}

/** The parts of a limit, or what is wrong with the text. */
function readLimit(text: string, units: readonly LimitUnit[]): LimitParts | string {
  const [, digits, written = ''] = FORM.exec(text) ?? [];
  const count = Number(digits);
  const unit = units.find((known) => known === written);
  const shown = () => `"${printable(text)}"`;
  if (text === '') return `A limit is empty. ${REMEDY}`;
  if (digits === undefined || !unit) return `${shown()} is not a limit. ${remedyFor(written, count)}`;
  if (count === 0) return `${shown()} allows nothing. To stop a key, disable it.`;
  if (isBudgetUnit(unit))
    return count <= MAX_BUDGET ? { count, unit } : `${shown()} is more than ${MAX_BUDGET}, which is the most.`;
  if (count > MAX_PER_SECOND * LIMIT_SECONDS[unit as RateUnit])
    return `${shown()} is more than ${MAX_PER_SECOND} a second, which is the most that a limit can allow.`;
  return { count, unit };
}

function remedyFor(written: string, count: number): string {
  if (written === 'M')
    return `Units are lower case: write ${count}/m for a minute, or ${count}/month for a month of 30 days.`;
  const meant = RATE_UNITS.find((unit) => unit === parseUnit(written));
  return meant ? `Did you mean ${count}/${meant}? ${UNITS_RULE}` : REMEDY;
}

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

/** The delay that a header asks for (RFC 9110, section 10.2.3), in milliseconds; undefined if it cannot be read. */
export function readRetryAfter(text: string, now: number): number | undefined {
  if (/^\d{1,9}$/.test(text.trim())) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
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

/** A duration in milliseconds in its largest unit that is whole, as `readDuration` parses it: `90m`, `1h`, `30d`. */
export function formatDuration(milliseconds: number): string {
  const [unit, length] = (['d', 'h', 'm'] as const)
    .map((name) => [name, UNIT_MS[name]] as const)
    .find(([, each]) => milliseconds >= each && milliseconds % each === 0) ?? ['s', UNIT_MS.s];
  return `${milliseconds / length}${unit}`;
}

const DAY = 86_400_000;
/** Each unit with its length, and from which distance on it is used, in milliseconds. */
const UNITS = [
  { unit: 'year', length: 365 * DAY, from: 365 * DAY },
  { unit: 'month', length: 30 * DAY, from: 100 * DAY },
  { unit: 'day', length: DAY, from: DAY },
  { unit: 'hour', length: 3_600_000, from: 3_600_000 },
  { unit: 'minute', length: 60_000, from: 60_000 },
  { unit: 'second', length: 1000, from: 0 },
] as const;
/** How much a rounded number may be wrong, in parts of the right one. */
const TOLERANCE = 0.1;

/**
 * How long ago a time was, or in how long it is: "2 minutes ago", "in 30 days", "now". In the largest unit in which the
 * rounded number is about right: "in 90 minutes". Of a time made `clampTime`.
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

/** How far apart the clocks of machines may be, in milliseconds: they are adjusted by seconds. */
export const MAX_SKEW_MS = 60_000;
