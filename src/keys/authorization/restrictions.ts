import type { ApiKey } from '../key/api-key.ts';
import { areWithin } from '../key/allow-from.ts';
import { type Limit, type LimitUnit, splitLimit } from '../limit.ts';
import { Networks } from '../networks.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { formatList } from '../text.ts';
import type { Chain } from './chain.ts';

type RestrictedKey = Pick<ApiKey, 'id' | 'limits' | 'allowFrom'>;

/** A limit, against which the requests of its key and of all its child keys count. */
export interface AppliedLimit {
  readonly keyId: string;
  readonly limit: Limit;
}

/** What holds the requests of a key, whatever they ask for: its limits and networks, and those of its parent keys. */
export interface Restrictions {
  /** The same for keys that are held by the same limits. */
  readonly limitsId: string;
  readonly limits: readonly AppliedLimit[];
  /** A request must come from all of them. */
  readonly networks: readonly Networks[];
}

/** The restrictions of the last key of a chain; undefined if there are none. */
export function restrictionsOf({ keys }: Chain, { defaultLimits }: Catalog): Restrictions | undefined {
  if (defaultLimits.length === 0 && keys.every(isFree)) return undefined;
  const limits = keys.flatMap((key) => limitsOf(key, defaultLimits).map((limit) => ({ keyId: key.id, limit })));
  return {
    limitsId: limits.map(({ keyId, limit }) => `${keyId} ${limit}`).join(),
    limits,
    networks: keys.flatMap(({ allowFrom }) => (allowFrom ? new Networks(allowFrom) : [])),
  };
}

function isFree({ limits, allowFrom }: RestrictedKey): boolean {
  return limits.length === 0 && allowFrom === null;
}

/** The limits of a key: its own, or those of keys that have none. */
function limitsOf({ limits }: RestrictedKey, defaultLimits: readonly Limit[]): readonly Limit[] {
  return limits.length > 0 ? limits : defaultLimits;
}

/**
 * How one chain of keys is held closer than another, in the words "… is limited to 100/m"; undefined if it is not. A
 * limit holds as close as another of the same unit that allows as much, and networks as close as those they lie in.
 */
export function closerRestriction(
  closer: readonly RestrictedKey[],
  than: readonly RestrictedKey[],
  { defaultLimits }: Pick<Catalog, 'defaultLimits'>,
): string | undefined {
  const counts = countsOf(than, defaultLimits);
  for (const [unit, count] of countsOf(closer, defaultLimits))
    if (count < (counts.get(unit) ?? Infinity)) return `is limited to ${count}/${unit}`;
  const allowed = than.flatMap(({ allowFrom }) => (allowFrom ? [allowFrom] : []));
  for (const { allowFrom } of closer)
    if (allowFrom && !allowed.some((networks) => areWithin(networks, allowFrom)))
      return `may be used from ${formatList(allowFrom, 'or')} alone`;
  return undefined;
}

/** The lowest limit of each unit. */
function countsOf(keys: readonly RestrictedKey[], defaultLimits: readonly Limit[]): Map<LimitUnit, number> {
  const counts = new Map<LimitUnit, number>();
  for (const key of keys)
    for (const limit of limitsOf(key, defaultLimits)) {
      const { count, unit } = splitLimit(limit);
      counts.set(unit, Math.min(count, counts.get(unit) ?? Infinity));
    }
  return counts;
}
