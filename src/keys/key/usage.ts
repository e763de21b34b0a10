import {
  anyText,
  checkOptions,
  declarePort,
  formatTime,
  KeysError,
  orNull,
  printable,
  type ReadPorts,
  requirePastTime,
  type Rules,
  UNIT_MS,
} from '../basics/index.ts';
import type { Permission, Role } from '../permissions/index.ts';
import type { Rotation } from './rotation.ts';

/**
 * Outcomes of requests with a secret of a key.
 * - accepted: the key was accepted.
 * - forbidden: it lacked a permission, or came from a network that is not allowed.
 * - limited: it exceeded a limit.
 * - refused: the key was disabled, had expired or had another secret.
 */
export const OUTCOMES = ['accepted', 'forbidden', 'limited', 'refused'] as const;

/** The outcome of a request. */
export type Outcome = (typeof OUTCOMES)[number];

/** The number of requests with each outcome. */
export type OutcomeCounts = Readonly<Record<Outcome, number>>;

export const NO_REQUESTS: OutcomeCounts = { accepted: 0, forbidden: 0, limited: 0, refused: 0 };

/** The sum of two sets of counts. */
export function sumOf(one: OutcomeCounts, other: OutcomeCounts): OutcomeCounts {
  return {
    accepted: one.accepted + other.accepted,
    forbidden: one.forbidden + other.forbidden,
    limited: one.limited + other.limited,
    refused: one.refused + other.refused,
  };
}

/** The units of usage statistics, in UTC. */
export const PERIODS = ['HOUR', 'DAY'] as const;

/** An hour or a day in UTC. */
export type Period = (typeof PERIODS)[number];

/** Their lengths in milliseconds. */
export const PERIOD_MS: Readonly<Record<Period, number>> = { HOUR: UNIT_MS.h, DAY: UNIT_MS.d };

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

/** The start of the hour or day of a time, in milliseconds since 1970. */
export function startOf(period: Period, time: number): number {
  return Math.floor(time / PERIOD_MS[period]) * PERIOD_MS[period];
}

/** The start of the first hour or day that is still kept, which is a whole day. */
export function firstKept(period: Period, now: number): number {
  return startOf('DAY', now) - KEPT_DAYS[period] * UNIT_MS.d;
}

/** A request for the usage of a key. Texts are as the user wrote them. */
export interface UsageRequest {
  /** The first hour or day, as a time within it: an RFC 3339 date and time, a date, or an age such as `24h`. */
  from?: string | null;
  /** The last hour or day, as a time within it or its end, written like `from`. Default: now. */
  to?: string | null;
  /** One of `PERIODS`, case-insensitive. Default: by the hour. */
  by?: string | null;
}

/** The options of a request. Null counts as left out. */
const USAGE_OPTIONS: Rules<UsageRequest> = { from: orNull(anyText), to: orNull(anyText), by: orNull(anyText) };

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

/** The total usage of a key. Times are milliseconds since 1970. */
export interface UsageTotals {
  /** How often it was accepted. */
  uses: number;
  /** When it was last accepted; null if never. */
  lastUsedAt: number | null;
  /** When the previous secret was last used. */
  previousLastUsedAt: number | null;
}

/**
 * A grant that a key used: a permission, a role that it granted (`role:VIEWER`), a tool (`tool:search`), or a route
 * (`route:example.org/api/**`).
 */
export type UsedGrant = Permission | `role:${Role}` | `tool:${string}` | `route:${string}`;

/** The prefixes of used tools and routes. */
export const [TOOL, ROUTE] = ['tool:', 'route:'] as const;

/** The most tools and routes remembered for a key: clients choose the names of tools. */
export const MAX_TOOLS = 500;

/** A tool of an MCP server that a key has called. */
export interface UsedTool {
  name: string;
  /** When it was last called, in milliseconds since 1970. */
  lastUsedAt: number;
}

export interface KeyUsage extends UsageTotals {
  id: string;
  /** The permissions that it used, and the roles that it granted, each once. */
  permissions: readonly UsedGrant[];
  hours: readonly HourUsage[];
}

/**
 * Counts to add to the outcomes of an hour. A request first counted as accepted that ended otherwise reduces
 * `accepted`, so this can be negative.
 */
export interface HourUsage extends OutcomeCounts {
  /** The start of the hour, in milliseconds since 1970. */
  start: number;
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
  /** The total usage of keys, by id. Unused keys are left out. */
  totals(ids: readonly string[]): Promise<Map<string, UsageTotals>>;
  /** The outcomes of a key's requests, by hours or days in order. Periods without requests are left out. */
  byPeriod(id: string, range: UsageRange): Promise<PeriodUsage[]>;
  /** The outcomes of the requests of all keys, including deleted ones. */
  ofAll(range: UsageRange): Promise<PeriodUsage[]>;
  /** The grants that keys have used, by key id, each with its last use in milliseconds since 1970. */
  grants(ids: readonly string[]): Promise<Map<string, Map<UsedGrant, number>>>;
  /**
   * Searches the ids of keys with usage for deleted keys, from an id on. @returns those found, and the id to continue
   * from
   */
  ofDeleted(after: string | undefined): Promise<{ ids: string[]; next: string | undefined }>;
}

/** Writes usage, in a transaction that only counts: see `RepositoryWriteOptions`. */
interface UsageWriter extends UsageFinder {
  /** Adds to the totals of keys; keys that no longer exist are ignored. */
  add(usage: readonly KeyUsage[]): Promise<void>;
  /** Brings the stored usage closer to its bounds. @returns true once it is within them */
  condense(bounds: UsageBounds): Promise<boolean>;
  /** Removes the usage of deleted keys, about this many rows. @returns true if nothing is left */
  forget(ids: readonly string[], rows: number): Promise<boolean>;
}
export const USAGE = declarePort<UsageFinder, UsageWriter>('usage');

/** When the previous secret was last used since a rotation; null if it was not. */
export function previousUseSince(
  { startedAt }: Rotation | Omit<Rotation, 'grace'>,
  { previousLastUsedAt }: UsageTotals,
): number | null {
  return previousLastUsedAt !== null && previousLastUsedAt >= startedAt ? previousLastUsedAt : null;
}

/** True if the new secret of a rotation was used last, so that the key's user has it. */
export function isTakenUp({ startedAt }: Rotation, { lastUsedAt, previousLastUsedAt }: UsageTotals): boolean {
  return lastUsedAt !== null && lastUsedAt > Math.max(startedAt, previousLastUsedAt ?? 0);
}

export const NO_USAGE: UsageTotals = { uses: 0, lastUsedAt: null, previousLastUsedAt: null };

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

  /** The total usage of keys, by id. Unused keys are left out. */
  usageOf(ids: readonly string[]): Promise<Map<string, UsageTotals>> {
    return this.#options.repository.port(USAGE).totals(ids);
  }

  /**
   * The outcomes of a key's requests, by hours or days in UTC. Periods without requests are left out.
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async byPeriod(id: string, request: UsageRequest = {}): Promise<UsageByPeriod> {
    checkOptions('keys.usage.byPeriod', request, USAGE_OPTIONS);
    const { repository, clock } = this.#options;
    const range = readUsageRequest(request, clock());
    return { ...range, periods: await repository.port(USAGE).byPeriod(id, range) };
  }

  /**
   * The outcomes of the requests of all keys, including deleted ones.
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async ofAll(request: UsageRequest = {}): Promise<UsageByPeriod> {
    checkOptions('keys.usage.ofAll', request, USAGE_OPTIONS);
    const { repository, clock } = this.#options;
    const range = readUsageRequest(request, clock());
    return { ...range, periods: await repository.port(USAGE).ofAll(range) };
  }

  /**
   * The permissions that a key has used, and the roles that it has granted, with the time of the last use of each, in
   * milliseconds since 1970.
   */
  async usedPermissionsOf(id: string): Promise<Map<UsedGrant, number>> {
    return (await this.usedPermissionsOfAll([id])).get(id)!;
  }

  /** Like `usedPermissionsOf`, for several keys, by id. */
  usedPermissionsOfAll(ids: readonly string[]): Promise<Map<string, Map<UsedGrant, number>>> {
    return this.#options.repository.port(USAGE).grants(ids);
  }
}
