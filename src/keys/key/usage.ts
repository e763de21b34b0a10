import type { Permission, Role } from '../permissions/catalog.ts';
import { checkOptions } from '../options.ts';
import { declarePort, type ReadPorts } from '../port.ts';
import type { OutcomeCounts } from '../usage/outcomes.ts';
import type { PeriodUsage, UsageByPeriod, UsageRange } from '../usage/periods.ts';
import { readUsageRequest, USAGE_OPTIONS, type UsageRequest } from '../usage/usage-request.ts';
import type { Rotation } from './rotation.ts';

/** How much a key was used. Times are milliseconds since 1970. */
export interface UsageTotals {
  /** How often it was accepted. */
  uses: number;
  /** When it was last accepted; null if never. */
  lastUsedAt: number | null;
  /** When the previous secret was last used. */
  previousLastUsedAt: number | null;
}

/** What a key has used: a permission, or a role that it has granted, as `role:VIEWER`. */
export type UsedGrant = Permission | `role:${Role}`;

/** What to add to the recorded usage of a key. */
export interface KeyUsage extends UsageTotals {
  /** The id of the key. */
  id: string;
  /** The permissions that it used, and the roles that it granted, each once. */
  permissions: readonly UsedGrant[];
  /** How its requests ended, by the hours in which they came. */
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
  /** How many hours, and how many days, may be dealt with at once. */
  rows: number;
}

/** Finds how keys were used. */
export interface UsageFinder {
  /** How much keys were used, by their ids; those that never were are left out. */
  totals(ids: readonly string[]): Promise<Map<string, UsageTotals>>;
  /** How the requests of a key ended, by hours or days in their order; those without a request are left out. */
  byPeriod(id: string, range: UsageRange): Promise<PeriodUsage[]>;
  /** The permissions that keys have used, by their ids, each with its last use in milliseconds since 1970. */
  grants(ids: readonly string[]): Promise<Map<string, Map<UsedGrant, number>>>;
}

/** Keeps how keys are used, in a transaction. */
export interface UsageWriter extends UsageFinder {
  /** Adds to the totals of keys; keys that no longer exist are ignored. */
  add(usage: readonly KeyUsage[]): Promise<void>;
  /** Brings what is kept nearer to its bounds. @returns whether it is within them */
  condense(bounds: UsageBounds): Promise<boolean>;
}
/** The port for it. */
export const USAGE = declarePort<UsageFinder, UsageWriter>('usage');

/** When the previous secret was last used since a rotation; null if it was not. */
export function previousUseSince(
  { startedAt }: Rotation | Omit<Rotation, 'grace'>,
  { previousLastUsedAt }: UsageTotals,
): number | null {
  return previousLastUsedAt !== null && previousLastUsedAt >= startedAt ? previousLastUsedAt : null;
}

/** The usage of a key that was never used. */
export const NO_USAGE: UsageTotals = { uses: 0, lastUsedAt: null, previousLastUsedAt: null };

/** What telling how keys are used needs from outside. */
export interface UsageOptions {
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
