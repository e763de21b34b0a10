import { formatList, isBudget, type Limit, type LimitUnit, Networks, splitLimit } from '../basics/index.ts';
import { type ApiKey, areWithin, isFor, isUnrestricted } from '../key/index.ts';
import type { Catalog } from '../permissions/index.ts';
import type { Chain } from './chain.ts';

/** A limit, against which the requests of its key and of all its child keys count. */
export interface AppliedLimit {
  readonly keyId: string;
  readonly limit: Limit;
  /** The route that it is of, as `RouteCharge` has it; undefined for one of the key itself. */
  readonly route?: string;
  /** How much of it a request counts as. Default: 1. */
  readonly weight?: number;
}

/** The amount that a request counts as: mostly once. */
export interface Charge {
  /** How many requests it is, which count as uses. */
  readonly requests: number;
  /** The amount that it counts against all other limits of a key. */
  readonly cost: number;
  /** The amounts that it counts against limits of routes, which each key has of its own. */
  readonly routes: readonly RouteCharge[];
}

export interface RouteCharge {
  /** Identifies the route, whatever file it is in. */
  readonly route: string;
  readonly limit: Limit;
  readonly cost: number;
}

export const ONCE: Charge = { requests: 1, cost: 1, routes: [] };
/** The charge of a request that does not count yet, as it is not known as what. */
export const NOT_YET: Charge = { requests: 0, cost: 0, routes: [] };

/** The restrictions of all requests of a key: its limits and networks, and those of its parent keys. */
export interface Restrictions {
  /** The same for keys that are held by the same limits. */
  readonly limitsId: string;
  readonly limits: readonly AppliedLimit[];
  /** A request must come from all of them. */
  readonly networks: readonly Networks[];
  /** A request must be made to what each of them is for: see `ApiKey.audience`. */
  readonly audiences: readonly string[];
}

/** The restrictions of the last key of a chain; undefined if there are none. */
export function restrictionsOf({ keys }: Chain, { defaultLimits }: Catalog): Restrictions | undefined {
  if (defaultLimits.length === 0 && keys.every((key) => key.audience === null && isUnrestricted(key))) return undefined;
  const limits = keys.flatMap(({ id: keyId, limits: own }) =>
    appliedLimits(own, defaultLimits).map((limit) => ({ keyId, limit })),
  );
  return {
    limitsId: limits.map(({ keyId, limit }) => `${keyId} ${limit}`).join(),
    limits,
    networks: keys.flatMap(({ allowFrom }) => (allowFrom ? new Networks(allowFrom) : [])),
    audiences: keys.flatMap(({ audience }) => audience ?? []),
  };
}

export const CHARGED = new WeakMap<Charge, WeakMap<Restrictions | Chain, Restrictions>>();

/** The limits of a key: its own rates, or those of keys that have none, and its budgets. */
export function appliedLimits(limits: readonly Limit[], defaultLimits: readonly Limit[]): readonly Limit[] {
  return limits.every(isBudget) ? [...defaultLimits, ...limits] : limits;
}

/**
 * How one chain of keys is held closer than another, in the words "… is limited to 100/m"; undefined if it is not. A
 * limit holds as close as another of the same unit that allows as much, and networks as close as those they lie in.
 */
export function closerRestriction(
  closer: readonly ApiKey[],
  than: readonly ApiKey[],
  { defaultLimits }: Pick<Catalog, 'defaultLimits'>,
): string | undefined {
  const counts = countsOf(than, defaultLimits);
  for (const [unit, count] of countsOf(closer, defaultLimits))
    if (count < (counts.get(unit) ?? Infinity)) return `is limited to ${count}/${unit}`;
  const allowed = than.flatMap(({ allowFrom }) => (allowFrom ? [allowFrom] : []));
  for (const { allowFrom } of closer)
    if (allowFrom && !allowed.some((networks) => areWithin(networks, allowFrom)))
      return `may be used from ${formatList(allowFrom, 'or')} alone`;
  const audiences = than.flatMap(({ audience }) => audience ?? []);
  for (const { audience } of closer)
    if (audience !== null && !audiences.some((one) => isFor(audience, one))) return `is for ${audience} alone`;
  return undefined;
}

function countsOf(keys: readonly ApiKey[], defaultLimits: readonly Limit[]): Map<LimitUnit, number> {
  const counts = new Map<LimitUnit, number>();
  for (const key of keys)
    for (const limit of appliedLimits(key.limits, defaultLimits)) {
      const { count, unit } = splitLimit(limit);
      counts.set(unit, Math.min(count, counts.get(unit) ?? Infinity));
    }
  return counts;
}
