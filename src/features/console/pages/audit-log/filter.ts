import { AUDIT_ACTIONS, AUDIT_OUTCOMES } from '../../../../keys/audit/index.ts';
import { readDate, readDay } from '../../../../keys/basics/index.ts';
import { withQuery } from '../../links.ts';
import type { Visit } from '../../visit.tsx';

/** Filters of the log, as in the address. Empty for none. */
export interface Filter {
  readonly key: string;
  readonly actor: string;
  readonly action: string;
  readonly outcome: string;
  /** Days or times in UTC, such as `2030-01-31` or `2030-01-31T12:00`. */
  readonly since: string;
  readonly until: string;
}

/** Milliseconds since 1970; undefined without that filter. */
export interface FilterTimes {
  readonly since: number | undefined;
  readonly until: number | undefined;
}

export const DAY_MS = 86_400_000;

/** Variables of a query with this filter. */
export const FILTER_VARIABLES = '$key: String, $actor: String, $action: AuditAction, $outcome: AuditOutcome';
export const FILTER_ARGUMENTS = 'apiKey: $key, actor: $actor, action: $action, outcome: $outcome';

export function filterIn(visit: Visit): Filter {
  const given = (name: string) => visit.query(name) ?? '';
  return {
    key: given('key'),
    actor: given('actor'),
    action: AUDIT_ACTIONS.find((action) => action === given('action')) ?? '',
    outcome: AUDIT_OUTCOMES.find((outcome) => outcome === given('outcome')) ?? '',
    since: given('since'),
    until: given('until'),
  };
}

/** The filter except for its times, as GraphQL variables. */
export function variablesOf({ since: _since, until: _until, ...others }: Filter): object {
  return Object.fromEntries(Object.entries(others).filter(([, value]) => value !== ''));
}

/** The times of a filter, or their problem. The last day is included as a whole. */
export function timesOf({ since, until }: Filter): FilterTimes | { problem: string } {
  const times = { since: readTime(since), until: readTime(until, DAY_MS) };
  const wrong = (['since', 'until'] as const).find((name) => Number.isNaN(times[name]));
  if (wrong === undefined) return times;
  const text = { since, until }[wrong];
  return { problem: `"${text}" is not a time. Enter a day, or a day and a time, such as 2030-01-31T12:00.` };
}

function readTime(text: string, added = 0): number | undefined {
  if (text === '') return undefined;
  const day = readDay(text);
  if (day !== undefined) return day + added;
  // A time field has no zone and usually no seconds.
  const withSeconds = text.replace(/T\d\d:\d\d$/, '$&:00');
  return readDate(withSeconds.replace(/:\d\d(\.\d+)?$/, '$&Z')) ?? readDate(text) ?? Number.NaN;
}

/** A time as form fields and addresses write it, in UTC. */
export function fieldTime(time: number): string {
  return new Date(time).toISOString().slice(0, 16);
}

/** The address of the log, or of its export, with this filter. @param more of the query */
export function addressOf(
  root: string,
  filter: Filter,
  more: Readonly<Record<string, string>> = {},
  path = '',
): string {
  return withQuery(`${root}audit-log${path}`, { ...filter, ...more });
}
