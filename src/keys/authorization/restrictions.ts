import { type Limit, Networks } from '../basics/index.ts';
import { type ApiKey, appliedLimits, isUnrestricted, RESTRICTIONS } from '../key/index.ts';
import type { Catalog } from '../permissions/index.ts';
import type { Chain } from './chain.ts';

/** A limit on the requests of a key and of all its child keys together. */
export interface AppliedLimit {
  readonly keyId: string;
  readonly limit: Limit;
  /** The route of the limit, as in `RouteCharge`; undefined for a limit of the key itself. */
  readonly route?: string;
  /** How many requests one counts as. Default: 1. */
  readonly weight?: number;
}

/** The amounts that a request counts as, mostly 1. */
export interface Charge {
  /** The number of requests, which count as uses. */
  readonly requests: number;
  /** The amount for all limits of the key, except those of routes. */
  readonly cost: number;
  /** The amounts for limits of routes. Each key has its own count for a route. */
  readonly routes: readonly RouteCharge[];
}

export interface RouteCharge {
  /** Identifies the route across files. */
  readonly route: string;
  readonly limit: Limit;
  readonly cost: number;
}

export const ONCE: Charge = { requests: 1, cost: 1, routes: [] };
/** The charge of a request that is counted later, once its cost is known. */
export const NOT_YET: Charge = { requests: 0, cost: 0, routes: [] };

/** The restrictions on all requests of a key: its limits and networks, and those of its parent keys. */
export interface Restrictions {
  /** Equal for keys under the same limits. */
  readonly limitsId: string;
  readonly limits: readonly AppliedLimit[];
  /** A request must come from all of them. */
  readonly networks: readonly Networks[];
  /** A request must be made to an address in each of them: see `ApiKey.audience`. */
  readonly audiences: readonly string[];
}

/** The restrictions of the last key of a chain; undefined if there are none. */
export function restrictionsOf({ keys }: Chain, { defaultLimits }: Catalog): Restrictions | undefined {
  if (defaultLimits.length === 0 && keys.every(isUnrestricted)) return undefined;
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

/**
 * Words such as "is limited to 100/m" if the keys of one chain are restricted more than those of another; otherwise
 * undefined.
 */
export function closerRestriction(
  closer: readonly ApiKey[],
  than: readonly ApiKey[],
  catalog: Pick<Catalog, 'defaultLimits'>,
): string | undefined {
  for (const [name, restriction] of RESTRICTIONS) {
    const valuesOf = (keys: readonly ApiKey[]) => keys.map((key) => key[name]);
    const value = restriction.closer(valuesOf(closer), valuesOf(than), catalog);
    if (value !== undefined) return restriction.words(value);
  }
  return undefined;
}
