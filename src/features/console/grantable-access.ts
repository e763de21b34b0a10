import {
  chainExpiry,
  findChain,
  heldGrants,
  notGrantable,
  type Principal,
  requireFor,
  requirePolicy,
  requireToCreateAny,
  requireToHoldKey,
  requireToOutlive,
  violationsOfEnd,
} from '../../keys/authorization/index.ts';
import {
  findPlace,
  findRefusal,
  type Parts,
  type PlaceBefore,
  type Refusal,
  requireChange,
  requireUnrefused,
} from '../../keys/changes/index.ts';
import { type ApiKey, MAX_DURATION_MS } from '../../keys/key/index.ts';
import { type Catalog, type Grant, PermissionSet, type Role } from '../../keys/permissions/index.ts';

/** The grants and expiry that a key can give to another one, by its own grants and the policy. */
export interface Grantable {
  /** Why it can grant nothing; null if it can. */
  readonly refusal: Refusal | null;
  readonly roles: readonly Role[];
  readonly permissions: PermissionSet;
  /** Grants that it holds, but that the policy does not let keys give. */
  readonly withheld: readonly Grant[];
  /** The allowed expiry of the other key. @throws KeysError STORE_… */
  ends(): Promise<EndBounds>;
  /** How many more live keys the policy lets it create; null for any number. @throws KeysError STORE_… */
  countCreatable(): Promise<number | null>;
}

/** The allowed range of a key's expiry. */
export interface EndBounds {
  /** Why the expiry cannot be set or changed; null if it can. */
  readonly refusal: Refusal | null;
  /** The latest expiry that can be set, in milliseconds since 1970; null if there is none. */
  readonly latest: number | null;
  /** True if the key must expire. */
  readonly required: boolean;
}

interface KeyPlace extends PlaceBefore {
  readonly caller: Principal;
}

/** A placeholder: messages with the name are not shown. */
const NAMELESS = '';

/**
 * The grants and expiry that a key can give to another one, in addition to its own, or to a new key.
 * @throws KeysError STORE_…
 */
async function findGrantable(place: KeyPlace, key?: ApiKey): Promise<Grantable> {
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

/** The answer for an actor that is not allowed to change anything. */
function nothingBecause(refusal: Refusal): Grantable {
  return {
    refusal,
    ...NOTHING,
    ends: async () => ({ refusal, latest: null, required: false }),
    countCreatable: async () => 0,
  };
}

const NOTHING = { roles: [], permissions: new PermissionSet(), withheld: [] };

/** Refuses an actor that is not allowed to add anything to a key. @throws ForbiddenError */
async function requireToAdd(place: KeyPlace, key: ApiKey): Promise<void> {
  requireFor(place.caller, 'UPDATE', [key]);
  await requireUnrefused(place, key);
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

function findEnds({ caller, catalog, now }: KeyPlace): Promise<EndBounds> {
  return boundsOf({ caller, catalog, now }, null, (expiresAt) => {
    requireToOutlive(caller, expiresAt);
    requirePolicy(violationsOfEnd({ name: NAMELESS, expiresAt }, catalog, now));
  });
}

function findEndsOf(place: KeyPlace, key: ApiKey): Promise<EndBounds> {
  return boundsOf(place, key.expiresAt, (expiresAt) => {
    requireFor(place.caller, 'UPDATE', [key]);
    return requireChange(place, key, { ...key, expiresAt });
  });
}

/**
 * The latest expiry that the rules allow. It is enough to try a few candidates, since an earlier expiry is never
 * refused if a later one is allowed. The present expiry is always allowed, as it is no change.
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

/** Finds out in advance what an actor can grant. Nothing is written, and nothing counts as used. */
export class GrantableAccess {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * The grants and expiry that an actor can give to a key, in addition to its own, or to a new key.
   * @throws KeysError STORE_…
   */
  async of(actor: Principal, key?: ApiKey): Promise<Grantable> {
    const place = await findPlace(this.#options, actor, key ? [key] : []);
    return 'refusal' in place ? nothingBecause(place.refusal) : findGrantable(place, key);
  }
}
