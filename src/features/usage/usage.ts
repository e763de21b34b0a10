import {
  declarePort,
  formatTime,
  KeysError,
  printable,
  type ReadPorts,
  requirePastTime,
  UNIT_MS,
} from '../../keys/basics/index.ts';
import { type KeyUse, type OutcomeCounts, type Period, PERIOD_MS, PERIODS, startOf } from '../../keys/key/index.ts';

/** How long usage is kept in each unit, in days: then hours become days, and days are removed. */
export const KEPT_DAYS: Readonly<Record<Period, number>> = { HOUR: 90, DAY: 730 };

/** The outcomes of a key's requests in an hour or on a day. */
export interface PeriodUsage extends OutcomeCounts {
  /** The start, in milliseconds since 1970. */
  start: number;
}

/** A range of whole hours or days. */
export interface UsageRange {
  by: Period;
  /** The start of the first one, in milliseconds since 1970. */
  from: number;
  /** The end of the last one. */
  to: number;
}

/** The hours or days of a range that had requests, in order. */
export interface UsageByPeriod extends UsageRange {
  periods: readonly PeriodUsage[];
}

/** The start of the first hour or day that is kept at a time, which is a whole day. */
export function firstKept(period: Period, now: number): number {
  return startOf('DAY', now) - KEPT_DAYS[period] * UNIT_MS.d;
}

/** A request for the usage of a key. Texts are as the user wrote them. Null counts as left out. */
export interface UsageRequest {
  /** The first hour or day, as a time within it: an RFC 3339 date and time, a date, or an age such as `24h`. */
  from?: string | null;
  /** The last hour or day, as a time within it or its end, written like `from`. Default: now. */
  to?: string | null;
  /** One of `PERIODS`, case-insensitive. Default: by the hour. */
  by?: string | null;
}

/** The default number of hours or days. */
const DEFAULT_COUNT: Readonly<Record<Period, number>> = { HOUR: 24, DAY: 30 };

/**
 * Parses a request for the usage of a key: whole hours or days, at most as many as are kept.
 * @throws KeysError INPUT_INVALID
 */
export function readUsageRequest(request: UsageRequest, now: number): UsageRange {
  const by = readPeriod(request.by);
  const length = PERIOD_MS[by];
  const earliest = firstKept(by, now);
  const end = startOf(by, now) + length;
  const to = request.to == null ? end : Math.min(startOf(by, requirePastTime(request.to, now) + length - 1), end);
  if (to <= earliest) throw tooEarly(request.to!, by, earliest);
  if (request.from == null) return { by, from: Math.max(to - DEFAULT_COUNT[by] * length, earliest), to };
  const from = startOf(by, requirePastTime(request.from, now));
  if (from < earliest) throw tooEarly(request.from, by, earliest);
  if (from < to) return { by, from, to };
  const remedy = 'Choose a start that has passed and is before the end.';
  throw new KeysError('INPUT_INVALID', `"${printable(request.from)}" is not before ${formatTime(to)}. ${remedy}`);
}

function readPeriod(text: string | null | undefined): Period {
  if (text == null) return 'HOUR';
  const period = PERIODS.find((name) => name === text.trim().toUpperCase());
  if (period) return period;
  throw new KeysError('INPUT_INVALID', `Use is counted by hour or by day, not by "${printable(text)}".`);
}

function tooEarly(text: string, by: Period, earliest: number): KeysError {
  const kept = `${by === 'HOUR' ? 'hours' : 'days'} are kept for ${KEPT_DAYS[by]} days, since ${formatTime(earliest)}`;
  const remedy = by === 'HOUR' ? 'Ask by day, or for a later time.' : 'Ask for a later time.';
  return new KeysError('INPUT_INVALID', `"${printable(text)}" is too early: ${kept}. ${remedy}`);
}

/** The bounds of the usage that is kept. Times are milliseconds since 1970, at the start of a day. */
export interface UsageBounds {
  /** Earlier hours are merged into days. */
  hoursFrom: number;
  /** Earlier days are removed. */
  daysFrom: number;
  /** How many hours, and how many days, are processed at once; there can be a few more. */
  rows: number;
}

interface UsageFinder {
  /** The outcomes of a key's requests, by hours or days in order. Periods without requests are left out. */
  byPeriod(id: string, range: UsageRange): Promise<PeriodUsage[]>;
  /** The outcomes of the requests of all keys, including deleted ones. */
  ofAll(range: UsageRange): Promise<PeriodUsage[]>;
}

/** Writes the outcomes of requests, in a transaction that only counts. */
interface UsageWriter extends UsageFinder {
  /** Adds to the counts of keys; keys that no longer exist are ignored. */
  add(uses: readonly KeyUse[]): Promise<void>;
  /** Brings the stored usage closer to its bounds. @returns true once it is within them */
  condense(bounds: UsageBounds): Promise<boolean>;
  /** Removes the usage of deleted keys, about this many rows. @returns true if nothing is left */
  forget(ids: readonly string[], rows: number): Promise<boolean>;
}
export const USAGE = declarePort<UsageFinder, UsageWriter>('usage');

/** The bounds at a time. */
export function boundsAt(now: number, rows: number): UsageBounds {
  return { hoursFrom: firstKept('HOUR', now), daysFrom: firstKept('DAY', now), rows };
}

/** The parts that `Usage` needs. */
interface UsageOptions {
  repository: ReadPorts;
  /** Milliseconds since 1970. */
  clock: () => number;
}

/** The usage of keys, for reading. */
export class Usage {
  readonly #options: UsageOptions;

  constructor(options: UsageOptions) {
    this.#options = options;
  }

  /**
   * The outcomes of a key's requests, by hours or days in UTC. Periods without requests are left out.
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async byPeriod(id: string, request: UsageRequest = {}): Promise<UsageByPeriod> {
    const { repository, clock } = this.#options;
    const range = readUsageRequest(request, clock());
    return { ...range, periods: await repository.port(USAGE).byPeriod(id, range) };
  }

  /**
   * The outcomes of the requests of all keys, including deleted ones.
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async ofAll(request: UsageRequest = {}): Promise<UsageByPeriod> {
    const { repository, clock } = this.#options;
    const range = readUsageRequest(request, clock());
    return { ...range, periods: await repository.port(USAGE).ofAll(range) };
  }
}
