import { parseUnit } from './duration.ts';
import type { Issue } from './errors.ts';
import { declarePort } from './port.ts';
import { formatList, printable } from './text.ts';

/** The seconds of each unit of a rate limit, shortest first. A month has 30 days. */
export const LIMIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86_400, month: 2_592_000 } as const;
/** The units of limits that never refill: a budget counts the cost of requests, uses count requests. */
export const BUDGET_UNITS = ['budget', 'uses'] as const;
type RateUnit = keyof typeof LIMIT_SECONDS;
/** One of `s`, `m`, `h`, `d` and `month`, or of budgets. */
export type LimitUnit = RateUnit | (typeof BUDGET_UNITS)[number];
/** How many requests a key can make per period, such as `100/m`, or in total, such as `1000/budget` and `1/uses`. */
export type Limit = `${number}/${LimitUnit}`;

/** The parts of a limit. */
export interface LimitParts {
  readonly count: number;
  readonly unit: LimitUnit;
}

/** How much of its limit of a unit a key has used, as the store keeps it. */
export interface UsedLimit {
  readonly keyId: string;
  readonly unit: string;
  readonly count: number;
  /** In microseconds since 1970; for a budget, the amount that is spent. */
  readonly unusedAt: number;
  readonly leases: string;
}

/** How much of their limits keys have used. */
interface UsedLimits {
  find(keyIds: readonly string[]): Promise<UsedLimit[]>;
}
/** The same port, in a transaction. */
interface UsedLimitsWriter extends UsedLimits {
  /** Adds new keys with limits that are already partly used. */
  insert(used: readonly UsedLimit[]): Promise<void>;
}
/** The port for used limits. */
export const USED_LIMITS = declarePort<UsedLimits, UsedLimitsWriter>('used limits');

/** A budget of a key, such as `1000/budget`, and the amount that is left. */
export interface Budget {
  readonly limit: Limit;
  readonly left: number;
}

/** The budgets among a key's limits, with the amount left of each. @param used of all its limits */
export function budgetsOf(key: { id: string; limits: readonly Limit[] }, used: readonly UsedLimit[]): Budget[] {
  return key.limits.filter(isBudget).map((limit) => {
    const { count, unit } = splitLimit(limit);
    const amount = used.find((each) => each.keyId === key.id && each.unit === unit)?.unusedAt ?? 0;
    return { limit, left: Math.max(count - amount, 0) };
  });
}

/** True for a limit that never refills. */
export function isBudget(limit: Limit): boolean {
  return isBudgetUnit(splitLimit(limit).unit);
}

export function isBudgetUnit(unit: string): boolean {
  return BUDGET_UNITS.some((each) => each === unit);
}

/** No limits: one list, shared by all keys without limits. */
export const NO_LIMITS: readonly Limit[] = [];

/** The most requests a second that a limit can allow, in any unit: times are counted in microseconds. */
const MAX_PER_SECOND = 10_000;
/** The largest budget: an Int in GraphQL can hold it. */
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

/** Like `parseLimits`, for limits that are not of one key alone, which cannot be budgets. */
export function parseRates(texts: readonly string[]): { values: Limit[]; issues: Issue[] } {
  return parseLimits(texts, RATE_UNITS);
}

/**
 * Parses limits, at most one of each unit. Repeated limits count once.
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

/** The parts of a limit, or the problem with the text. */
function readLimit(text: string, units: readonly LimitUnit[]): LimitParts | string {
  const [, digits, written = ''] = FORM.exec(text) ?? [];
  const count = Number(digits);
  const unit = units.find((known) => known === written);
  const shown = () => `"${printable(text)}"`;
  if (text === '') return `A limit is empty. ${REMEDY}`;
  if (digits === undefined || !unit) return `${shown()} is not a limit. ${remedyFor(written, count)}`;
  if (count === 0) return `${shown()} allows nothing. To stop a key, disable it.`;
  if (isBudgetUnit(unit))
    return count <= MAX_BUDGET ? { count, unit } : `${shown()} is too large; at most ${MAX_BUDGET} is allowed.`;
  if (count > MAX_PER_SECOND * LIMIT_SECONDS[unit as RateUnit])
    return `${shown()} is too large; at most ${MAX_PER_SECOND} a second are allowed.`;
  return { count, unit };
}

function remedyFor(written: string, count: number): string {
  if (written === 'M')
    return `Units are lower case: write ${count}/m for a minute, or ${count}/month for a month of 30 days.`;
  const meant = RATE_UNITS.find((unit) => unit === parseUnit(written));
  return meant ? `Did you mean ${count}/${meant}? ${UNITS_RULE}` : REMEDY;
}
