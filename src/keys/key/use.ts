import { declarePort, UNIT_MS } from '../basics/index.ts';
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

/** The units in which requests are counted, in UTC. */
export const PERIODS = ['HOUR', 'DAY'] as const;

/** An hour or a day in UTC. */
export type Period = (typeof PERIODS)[number];

/** Their lengths in milliseconds. */
export const PERIOD_MS: Readonly<Record<Period, number>> = { HOUR: UNIT_MS.h, DAY: UNIT_MS.d };

/** The start of the hour or day of a time, in milliseconds since 1970. */
export function startOf(period: Period, time: number): number {
  return Math.floor(time / PERIOD_MS[period]) * PERIOD_MS[period];
}

/** The total usage of a key. Times are milliseconds since 1970. */
export interface UseTotals {
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

/** Uses of a key to be written. */
export interface KeyUse extends UseTotals {
  id: string;
  /** The permissions that it used, and the roles that it granted, each once. */
  permissions: readonly UsedGrant[];
  hours: readonly HourUse[];
}

/**
 * Counts to add to the outcomes of an hour. A request first counted as accepted that ended otherwise reduces
 * `accepted`, so this can be negative.
 */
export interface HourUse extends OutcomeCounts {
  /** The start of the hour, in milliseconds since 1970. */
  start: number;
}

interface UseFinder {
  /** How much keys were used, by their ids; those that never were are left out. */
  totals(ids: readonly string[]): Promise<Map<string, UseTotals>>;
  /** Looks through some keys, by their ids, for deleted ones with use. @returns these, and where to go on */
  ofDeleted(after: string | undefined): Promise<{ ids: string[]; next: string | undefined }>;
}

/** Keeps how much keys are used, in a transaction that only counts: see `RepositoryWriteOptions`. */
interface UseWriter extends UseFinder {
  /** Adds to the totals of keys; keys that no longer exist are ignored. */
  add(uses: readonly KeyUse[]): Promise<void>;
  /** Locks what `add` locks first, until the transaction ends. Call it before other rows about these keys are removed. */
  lock(ids: readonly string[]): Promise<void>;
  /** Removes the use of keys that were deleted. */
  forget(ids: readonly string[]): Promise<void>;
}
export const USE = declarePort<UseFinder, UseWriter>('use');

/** When the previous secret was last used since a rotation; null if it was not. */
export function previousUseSince(
  { startedAt }: Rotation | Omit<Rotation, 'grace'>,
  { previousLastUsedAt }: UseTotals,
): number | null {
  return previousLastUsedAt !== null && previousLastUsedAt >= startedAt ? previousLastUsedAt : null;
}

/** True if the new secret of a rotation was used last, so that the key's user has it. */
export function isTakenUp({ startedAt }: Rotation, { lastUsedAt, previousLastUsedAt }: UseTotals): boolean {
  return lastUsedAt !== null && lastUsedAt > Math.max(startedAt, previousLastUsedAt ?? 0);
}

export const NO_USE: UseTotals = { uses: 0, lastUsedAt: null, previousLastUsedAt: null };
