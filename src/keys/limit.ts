import type { Issue } from './errors.ts';
import { declarePort } from './port.ts';
import { formatList, printable } from './text.ts';

/** The seconds of each unit of a limit, shortest first. A month has 30 days. */
export const LIMIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86_400, month: 2_592_000 } as const;
/** One of `s`, `m`, `h`, `d` and `month`. */
export type LimitUnit = keyof typeof LIMIT_SECONDS;
/** How many requests a key may make in a time, such as `100/m`. */
export type Limit = `${number}/${LimitUnit}`;

/** The parts of a limit. */
export interface LimitParts {
  readonly count: number;
  readonly unit: LimitUnit;
}

/** How far a key has used up its limit of a unit, as the store keeps it. */
export interface SpentLimit {
  readonly unit: string;
  readonly count: number;
  /** In microseconds since 1970. */
  readonly unusedAt: number;
  readonly leases: string;
}

/** How far keys have used up their limits, in a transaction. */
export interface SpentLimits {
  find(keyId: string): Promise<SpentLimit[]>;
  /** Lets a new key have used up so much. */
  insert(keyId: string, spent: readonly SpentLimit[]): Promise<void>;
}
/** The port for it. */
export const SPENT_LIMITS = declarePort<unknown, SpentLimits>('spent limits');

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
export function parseUnit(word: string): keyof typeof UNIT_WORDS | undefined {
  const wanted = word.toLowerCase();
  const units = Object.keys(UNIT_WORDS) as (keyof typeof UNIT_WORDS)[];
  return units.find((unit) => UNIT_WORDS[unit].some((each) => wanted === each || wanted === `${each}s`));
}

/** The most requests a second that a limit can allow, in whatever unit: times are counted in microseconds. */
const MAX_PER_SECOND = 10_000;
const UNITS = Object.keys(LIMIT_SECONDS) as LimitUnit[];
const NAMES: Readonly<Record<LimitUnit, string>> = { s: 'second', m: 'minute', h: 'hour', d: 'day', month: 'month' };
const FORM = /^(\d{1,12}) *\/ *([a-z]{1,9})$/i;
const UNITS_RULE = 'The units are s, m, h, d and month.';
const REMEDY = 'Write a number and s, m, h, d or month, such as 100/m.';

/**
 * Parses limits. One that is given twice counts once; of each unit there is one at most.
 * @returns the valid ones, from the shortest unit to the longest, and the issues with the others
 */
export function parseLimits(texts: readonly string[]): { values: Limit[]; issues: Issue[] } {
  const found = new Map<LimitUnit, number>();
  const issues: Issue[] = [];
  for (const text of texts) {
    const read = readLimit(text.trim());
    if (typeof read === 'string') issues.push({ code: 'LIMIT_INVALID', message: read });
    else if ((found.get(read.unit) ?? read.count) === read.count) found.set(read.unit, read.count);
    else {
      const both = formatList([found.get(read.unit)!, read.count].map((count) => `${count}/${read.unit}`));
      const message = `${both} are two limits a ${NAMES[read.unit]}. Leave one of them out.`;
      issues.push({ code: 'LIMIT_INVALID', message });
    }
  }
  const values = UNITS.flatMap((unit): Limit[] => (found.has(unit) ? [`${found.get(unit)!}/${unit}`] : []));
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
function readLimit(text: string): LimitParts | string {
  const [, digits, written = ''] = FORM.exec(text) ?? [];
  const count = Number(digits);
  const unit = UNITS.find((known) => known === written);
  const shown = () => `"${printable(text)}"`;
  if (text === '') return `A limit is empty. ${REMEDY}`;
  if (digits === undefined || !unit) return `${shown()} is not a limit. ${remedyFor(written, count)}`;
  if (count === 0) return `${shown()} allows nothing. To stop a key, disable it.`;
  if (count > MAX_PER_SECOND * LIMIT_SECONDS[unit])
    return `${shown()} is more than ${MAX_PER_SECOND} a second, which is the most that a limit can allow.`;
  return { count, unit };
}

function remedyFor(written: string, count: number): string {
  if (written === 'M')
    return `Units are lower case: write ${count}/m for a minute, or ${count}/month for a month of 30 days.`;
  const meant = UNITS.find((unit) => unit === parseUnit(written));
  return meant ? `Did you mean ${count}/${meant}? ${UNITS_RULE}` : REMEDY;
}
