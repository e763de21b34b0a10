import { chainExpiry, findChain } from '../authorization/chain.ts';
import { heldGrants, requireToCreateAny, requireToHoldKey, requireToOutlive } from '../authorization/granting.ts';
import { notGrantable, requirePolicy, violationsOfEnd } from '../authorization/policy.ts';
import type { Principal } from '../authorization/principal.ts';
import type { ApiKey } from '../key/api-key.ts';
import { MAX_DURATION_MS } from '../key/expiry.ts';
import type { Catalog, Grant, Role } from '../permissions/catalog.ts';
import { PermissionSet } from '../permissions/permission-set.ts';
import { type PlaceBefore, type Refusal, findRefusal } from './possible-changes.ts';
import { requireToUpdate } from './transaction.ts';
import { requireChange } from './update.ts';

/** What a key may give to another one: by what it holds, and by the policy. */
export interface Grantable {
  /** Why it may grant nothing; null if it may. */
  readonly refusal: Refusal | null;
  readonly roles: readonly Role[];
  readonly permissions: PermissionSet;
  /** What it holds, and the policy lets no key grant. */
  readonly withheld: readonly Grant[];
  /** When the other one may end. @throws KeysError STORE_… */
  ends(): Promise<EndBounds>;
  /** How many more live keys it may create by the policy; null for any number. @throws KeysError STORE_… */
  countCreatable(): Promise<number | null>;
}

/** When a key may end. */
export interface EndBounds {
  /** Why its end cannot be set, or not be another one; null if it can. */
  readonly refusal: Refusal | null;
  /** The latest end that can be set, in milliseconds since 1970; null if there is none. */
  readonly latest: number | null;
  /** Whether it has to end. */
  readonly required: boolean;
}

/** Where a key asks. */
export interface KeyPlace extends PlaceBefore {
  readonly caller: Principal;
}

/** A name that no message is read of. */
const NAMELESS = '';

/** What a key may give to another one beside what that has, or to one that it creates. @throws KeysError STORE_… */
export async function findGrantable(place: KeyPlace, key?: ApiKey): Promise<Grantable> {
  const { caller, catalog, find, now } = place;
  const refusal = await findRefusal(() => (key ? requireToAdd(place, key) : requireToCreateAny(caller)));
  const granted = refusal ? NOTHING : grantedBy(caller, catalog);
  const { maxKeysPerCreator: most } = catalog.policy;
  return {
    refusal,
    ...granted,
    ends: () => (key ? findEndsOf(place, key) : findEnds(place)),
    countCreatable: async () =>
      most === null ? null : Math.max(0, most - (await find.countLive(caller.apiKey.id, now))),
  };
}

/** What can be given by who may change nothing. */
export function nothingBecause(refusal: Refusal): Grantable {
  return {
    refusal,
    ...NOTHING,
    ends: async () => ({ refusal, latest: null, required: false }),
    countCreatable: async () => 0,
  };
}

const NOTHING = { roles: [], permissions: new PermissionSet(), withheld: [] };

/** Refuses who may add nothing to a key. @throws ForbiddenError */
async function requireToAdd(place: KeyPlace, key: ApiKey): Promise<void> {
  requireToUpdate(place, [key]);
  requireToHoldKey(place.caller, await findChain(place.find, key), key, place.catalog);
}

function grantedBy(caller: Principal, catalog: Catalog): Pick<Grantable, 'roles' | 'permissions' | 'withheld'> {
  const { roles, permissions: held } = heldGrants(caller, catalog);
  const permissions = held.permissions();
  const withheld = notGrantable({ roles, permissions }, catalog);
  const isWithheld: ReadonlySet<Grant> = new Set(withheld);
  return {
    roles: roles.filter((role) => !isWithheld.has(role)),
    permissions: new PermissionSet(permissions.filter((permission) => !isWithheld.has(permission))),
    withheld,
  };
}

/** When a key may end that is created. */
function findEnds({ caller, catalog, now }: KeyPlace): Promise<EndBounds> {
  return boundsOf({ caller, catalog, now }, null, (expiresAt) => {
    requireToOutlive(caller, expiresAt);
    requirePolicy(violationsOfEnd({ name: NAMELESS, expiresAt }, catalog, now));
  });
}

function findEndsOf(place: KeyPlace, key: ApiKey): Promise<EndBounds> {
  return boundsOf(place, key.expiresAt, (expiresAt) => {
    requireToUpdate(place, [key]);
    return requireChange(place, key, { ...key, expiresAt });
  });
}

/**
 * The latest end that the rules allow. Whatever they allow lies before one of few times, since an earlier end is never
 * refused where a later one is not. The present end alone is, as no change, allowed in any case.
 */
async function boundsOf(
  { caller, catalog: { policy }, now }: Pick<KeyPlace, 'caller' | 'catalog' | 'now'>,
  present: number | null,
  attempt: (expiresAt: number | null) => void | Promise<void>,
): Promise<EndBounds> {
  const required = (await findRefusal(() => attempt(null))) !== null;
  const furthest = now + MAX_DURATION_MS;
  const longest = policy.maxLifetime === null ? null : now + policy.maxLifetime;
  const ends = [furthest, longest, present, chainExpiry(caller.chain)].filter((end) => end !== null && end > now);
  let refusal: Refusal | null = null;
  for (const end of (ends as number[]).toSorted((one, other) => other - one)) {
    refusal = await findRefusal(() => attempt(end === present ? end - 1 : end));
    if (!refusal) return { refusal, latest: end === furthest ? null : end, required };
  }
  return { refusal, latest: null, required };
}
