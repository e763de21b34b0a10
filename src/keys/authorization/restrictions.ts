import { type Limit, Networks } from '../basics/index.ts';
import { type ApiKey, appliedLimits, isUnrestricted, RESTRICTIONS } from '../key/index.ts';
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

export const CHARGED = new WeakMap<Charge, WeakMap<Restrictions | Chain, Restrictions>>();

/**
 * Words such as "is limited to 100/m" if the keys of one chain are restricted more than those of another; undefined if
 * they are not.
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
