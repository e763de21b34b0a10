import { parseUnit } from './duration.ts';
import type { Issue } from './errors.ts';
import { declarePort } from './port.ts';
import { formatList, printable } from './text.ts';

/** The seconds of each unit of a rate limit, shortest first. A month has 30 days. */
export const LIMIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86_400, month: 2_592_000 } as const;
/** The units of limits that never become available again: a budget counts what requests cost, uses count requests. */
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

/** Tells whether a limit never becomes available again. */
export function isBudget(limit: Limit): boolean {
  return isBudgetUnit(splitLimit(limit).unit);
}

export function isBudgetUnit(unit: string): boolean {
  return BUDGET_UNITS.some((each) => each === unit);
}

/** No limits: one list for all keys that have none. */
export const NO_LIMITS: readonly Limit[] = [];

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
