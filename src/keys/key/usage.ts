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
 * How requests with a secret of a key end: the key was accepted; it lacks a permission, or came from where it may not;
 * it was over a limit; or it was not accepted at all, as it was disabled, has expired or got another secret.
 */
export const OUTCOMES = ['accepted', 'forbidden', 'limited', 'refused'] as const;

/** How a request ended. */
export type Outcome = (typeof OUTCOMES)[number];

/** How many requests ended in which way. */
export type OutcomeCounts = Readonly<Record<Outcome, number>>;

export const NO_REQUESTS: OutcomeCounts = { accepted: 0, forbidden: 0, limited: 0, refused: 0 };

/** The counts of two sets of requests together. */
export function sumOf(one: OutcomeCounts, other: OutcomeCounts): OutcomeCounts {
  return {
    accepted: one.accepted + other.accepted,
    forbidden: one.forbidden + other.forbidden,
    limited: one.limited + other.limited,
    refused: one.refused + other.refused,
  };
}

/** By what use is counted, in UTC. */
export const PERIODS = ['HOUR', 'DAY'] as const;

/** An hour or a day in UTC. */
export type Period = (typeof PERIODS)[number];

/** Their lengths in milliseconds. */
export const PERIOD_MS: Readonly<Record<Period, number>> = { HOUR: UNIT_MS.h, DAY: UNIT_MS.d };

/** How long use is kept by each, in days: then hours become days, and days are removed. */
export const KEPT_DAYS: Readonly<Record<Period, number>> = { HOUR: 90, DAY: 730 };

/** How requests with the secrets of a key ended in an hour or on a day. */
export interface PeriodUsage extends OutcomeCounts {
  /** When it began, in milliseconds since 1970. */
  start: number;
}

/** Whole hours or days, from one on and before another. */
export interface UsageRange {
  by: Period;
  /** The start of the first one, in milliseconds since 1970. */
  from: number;
  /** The end of the last one. */
  to: number;
}

/** The hours or days of a range in which there were requests, in their order. */
export interface UsageByPeriod extends UsageRange {
  periods: readonly PeriodUsage[];
}

/** The start of the hour or day that a time is in, in milliseconds since 1970. */
export function startOf(period: Period, time: number): number {
  return Math.floor(time / PERIOD_MS[period]) * PERIOD_MS[period];
}

/** The start of the first hour or day that is kept at a time, which is a whole day. */
export function firstKept(period: Period, now: number): number {
  return startOf('DAY', now) - KEPT_DAYS[period] * UNIT_MS.d;
}

/** A user's request for the use of a key. Texts are as the user wrote them. */
export interface UsageRequest {
  /** From the hour or day on that this is in: an RFC 3339 date and time, a date, or an age such as `24h`. */
  from?: string | null;
  /** Up to the end of the hour or day that ends with this or that this is in, written like `from`. Default: now. */
  to?: string | null;
  /** One of `PERIODS`, case-insensitive. Default: by the hour. */
  by?: string | null;
}

/** What a request may say. Null says nothing. */
const USAGE_OPTIONS: Rules<UsageRequest> = { from: orNull(anyText), to: orNull(anyText), by: orNull(anyText) };

/** How many hours or days are told of unless told otherwise. */
const DEFAULT_COUNT: Readonly<Record<Period, number>> = { HOUR: 24, DAY: 30 };

/**
 * Parses a request for the use of a key: whole hours or days, of which there are at most as many as are kept.
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

/** How much a key was used. Times are milliseconds since 1970. */
export interface UsageTotals {
  /** How often it was accepted. */
  uses: number;
  /** When it was last accepted; null if never. */
  lastUsedAt: number | null;
  /** When the previous secret was last used. */
  previousLastUsedAt: number | null;
}

/**
 * What a key has used: a permission, a role that it has granted, as `role:VIEWER`, a tool, as `tool:search`, or a
 * route, as `route:example.org/api/**`.
 */
export type UsedGrant = Permission | `role:${Role}` | `tool:${string}` | `route:${string}`;

/** What those of tools and routes begin with. */
export const [TOOL, ROUTE] = ['tool:', 'route:'] as const;

/** The most tools and routes of a key that are remembered: names of tools are from its requests. */
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
 * What to add to how the requests of an hour ended. One that was counted as accepted before, and ended otherwise, is
 * one accepted less.
 */
export interface HourUsage extends OutcomeCounts {
  /** When it began, in milliseconds since 1970. */
  start: number;
}

/** What is kept of the use of keys. Times are milliseconds since 1970, the starts of days. */
export interface UsageBounds {
  /** Earlier hours become days. */
  hoursFrom: number;
  /** Earlier days are removed. */
  daysFrom: number;
  /** How many hours, and how many days, are dealt with at once, or some more. */
  rows: number;
}

interface UsageFinder {
  /** How much keys were used, by their ids; those that never were are left out. */
  totals(ids: readonly string[]): Promise<Map<string, UsageTotals>>;
  /** How the requests of a key ended, by hours or days in their order; those without a request are left out. */
  byPeriod(id: string, range: UsageRange): Promise<PeriodUsage[]>;
  /** How the requests of all keys ended, those included that are gone. */
  ofAll(range: UsageRange): Promise<PeriodUsage[]>;
  /** The permissions that keys have used, by their ids, each with its last use in milliseconds since 1970. */
  grants(ids: readonly string[]): Promise<Map<string, Map<UsedGrant, number>>>;
  /** Looks through some keys, by their ids, for deleted ones with use. @returns these, and where to go on */
  ofDeleted(after: string | undefined): Promise<{ ids: string[]; next: string | undefined }>;
}

/** Keeps how keys are used, in a transaction that only counts: see `RepositoryWriteOptions`. */
interface UsageWriter extends UsageFinder {
  /** Adds to the totals of keys; keys that no longer exist are ignored. */
  add(usage: readonly KeyUsage[]): Promise<void>;
  /** Brings what is kept nearer to its bounds. @returns whether it is within them */
  condense(bounds: UsageBounds): Promise<boolean>;
  /** Removes the use of keys that were deleted, of so many rows or some more. @returns whether nothing is left */
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

/** Whether the new secret of a rotation was the last that was used: whoever uses the key has it. */
export function isTakenUp({ startedAt }: Rotation, { lastUsedAt, previousLastUsedAt }: UsageTotals): boolean {
  return lastUsedAt !== null && lastUsedAt > Math.max(startedAt, previousLastUsedAt ?? 0);
}

export const NO_USAGE: UsageTotals = { uses: 0, lastUsedAt: null, previousLastUsedAt: null };

/** What telling how keys are used needs from outside. */
interface UsageOptions {
  repository: ReadPorts;
  /** Milliseconds since 1970. */
  clock: () => number;
}

/** How keys are used, as it is told. */
export class Usage {
  readonly #options: UsageOptions;

  constructor(options: UsageOptions) {
    this.#options = options;
  }

  /** How much keys were used, by their ids; those that never were are left out. */
  usageOf(ids: readonly string[]): Promise<Map<string, UsageTotals>> {
    return this.#options.repository.port(USAGE).totals(ids);
  }

  /**
   * How the requests of a key ended, by hours or days in UTC; those without a request are left out.
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async byPeriod(id: string, request: UsageRequest = {}): Promise<UsageByPeriod> {
    checkOptions('keys.usage.byPeriod', request, USAGE_OPTIONS);
    const { repository, clock } = this.#options;
    const range = readUsageRequest(request, clock());
    return { ...range, periods: await repository.port(USAGE).byPeriod(id, range) };
  }

  /**
   * How the requests of all keys ended, those included that were deleted since.
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

  /** The same for several keys, by their ids. */
  usedPermissionsOfAll(ids: readonly string[]): Promise<Map<string, Map<UsedGrant, number>>> {
    return this.#options.repository.port(USAGE).grants(ids);
  }
}
