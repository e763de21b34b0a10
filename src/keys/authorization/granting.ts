import { formatList, formatTime, KeysError } from '../basics/index.ts';
import type { ApiKey } from '../key/index.ts';
import { type Catalog, type Permission, PermissionSet, type Role } from '../permissions/index.ts';
import { type Chain, chainExpiry, chainHolds, chainHoldsUnknown, MAX_CHAIN_LENGTH } from './chain.ts';
import { type Actor, denied, forbidden, OPERATOR, type Principal, requirePermission } from './principal.ts';
import { closerRestriction } from './restrictions.ts';

type Grants = Pick<ApiKey, 'roles' | 'permissions'>;

const RULE = 'A key cannot grant more than it holds: ';

/**
 * Refuses an actor that is not allowed to create a key with these grants and this expiry.
 * @throws ForbiddenError; KeysError CHAIN_TOO_LONG
 */
export function requireToCreate(actor: Actor, key: Grants & Pick<ApiKey, 'expiresAt'>, catalog: Catalog): void {
  if (actor === OPERATOR) return;
  requirePermission(actor, 'API_KEY', 'CREATE_OWN');
  requireToGrant(actor, key, catalog);
  requireToOutlive(actor, key.expiresAt);
  requireRoomForChildren(actor);
}

/** Refuses an actor that is not allowed to create any key. @throws ForbiddenError; KeysError CHAIN_TOO_LONG */
export function requireToCreateAny(actor: Actor): void {
  if (actor === OPERATOR) return;
  requirePermission(actor, 'API_KEY', 'CREATE_OWN');
  requireRoomForChildren(actor);
}

function requireRoomForChildren({ chain }: Principal): void {
  if (hasRoomForChildren(chain)) return;
  throw new KeysError(
    'CHAIN_TOO_LONG',
    `A chain of keys that created one another has at most ${MAX_CHAIN_LENGTH} keys. Create the key with a key further up.`,
  );
}

/** True if the last key of a chain can have child keys. */
export function hasRoomForChildren({ keys }: Chain): boolean {
  return keys.length < MAX_CHAIN_LENGTH;
}

/**
 * Refuses an actor that is not allowed to make this change. Less access needs only the right to change the key. More
 * access (added grants, a later expiry, a looser limit, more networks, or enabling it) also needs everything that the
 * changed key allows.
 * @param chain the key before the change, and its ancestors
 * @throws ForbiddenError
 */
export function requireToChange(actor: Actor, chain: Chain, after: ApiKey, catalog: Catalog): void {
  if (actor === OPERATOR) return;
  const [before] = chain.keys;
  const added = addedGrants(before, after, catalog);
  const loosens = isLoosened(before, after, catalog);
  requireToGrant(actor, added, catalog);
  if (endsLater(before, after)) requireToOutlive(actor, after.expiresAt);
  if (loosens) requireToLoosen(actor, chain, after, catalog);
  if (loosens || isWidenedBy(added, before, after)) requireToHoldKey(actor, chain, after, catalog);
}

/**
 * True if a change gives a key more access: added grants, a later expiry, looser limits or networks, or enabling it.
 */
export function isWidened(before: ApiKey, after: ApiKey, catalog: Catalog): boolean {
  return isWidenedBy(addedGrants(before, after, catalog), before, after) || isLoosened(before, after, catalog);
}

/** True if a change with these added grants gives a key more access, apart from limits and networks. */
function isWidenedBy({ roles, permissions }: Grants, before: ApiKey, after: ApiKey): boolean {
  const isEnabled = before.disabledAt !== null && after.disabledAt === null;
  return roles.length + permissions.length > 0 || endsLater(before, after) || isEnabled;
}

/** True if a changed key expires later than before, or never. */
export function endsLater(before: Pick<ApiKey, 'expiresAt'>, after: Pick<ApiKey, 'expiresAt'>): boolean {
  return before.expiresAt !== null && (after.expiresAt === null || after.expiresAt > before.expiresAt);
}

/** True if a changed key is allowed more requests, or from more networks. */
function isLoosened(before: ApiKey, after: ApiKey, catalog: Catalog): boolean {
  return closerRestriction([before], [after], catalog) !== undefined;
}

/**
 * Refuses an actor that would gain access that it does not have, by enabling a key or changing its secret. Its own
 * child keys never have more access than itself.
 * @param chain the key and its ancestors
 * @param key the key after the change
 * @throws ForbiddenError
 */
export function requireToHoldKey(actor: Actor, chain: Chain, key: ApiKey, catalog: Catalog): void {
  if (actor === OPERATOR || chain.keys.some(({ id }) => id === actor.apiKey.id)) return;
  requireToGrant(actor, key, catalog);
  requireToOutlive(actor, key.expiresAt);
  requireToLoosen(actor, chain, key, catalog);
}

/** Requires the actor to hold each role and permission that it grants, including permissions that are not declared. */
export function requireToGrant(actor: Principal, { roles, permissions }: Grants, catalog: Catalog): void {
  const { missing, foreign } = notHeld(actor, { roles, permissions }, catalog);
  if (missing.length > 0) throw forbidden(actor, missing, RULE);
  if (foreign.length > 0) {
    const names = `${foreign.length === 1 ? 'role' : 'roles'} ${formatList(foreign)}`;
    throw denied(actor, `${RULE}this key does not hold the ${names}. Grant single permissions instead.`);
  }
  for (const role of roles) actor.observer?.granted(role);
  for (const permission of permissions) if (catalog.knows(permission)) actor.observer?.used(permission);
}

/** The permissions and roles among some grants that a key does not hold. */
function notHeld(
  actor: Principal,
  { roles, permissions }: Grants,
  catalog: Catalog,
): { missing: Permission[]; foreign: Role[] } {
  const granted = PermissionSet.of(catalog, { roles, permissions });
  const unknown = permissions.filter((permission) => !catalog.knows(permission));
  const missing = [
    ...granted.missingFrom(actor.access),
    ...unknown.filter((permission) => !chainHoldsUnknown(actor.chain, permission)),
  ];
  return { missing, foreign: roles.filter((role) => !chainHolds(actor.chain, role, catalog)) };
}

/** Everything that a key can grant, as far as this rule goes: see `requireToCreate`. */
export function heldGrants(actor: Principal, catalog: Catalog): { roles: Role[]; permissions: PermissionSet } {
  const isHeld = (role: Role) => {
    const { missing, foreign } = notHeld(actor, { roles: [role], permissions: [] }, catalog);
    return missing.length + foreign.length === 0;
  };
  return { roles: catalog.roles.filter(isHeld), permissions: actor.access };
}

/** Keeps temporary access temporary: the expiry must not be later than the actor's own, which counts its ancestors. */
export function requireToOutlive(actor: Principal, expiresAt: number | null): void {
  const end = chainExpiry(actor.chain);
  if (end === null || (expiresAt !== null && expiresAt <= end)) return;
  throw denied(actor, `${RULE}this key expires at ${formatTime(end)}.`);
}

/** Requires limits and networks at least as strict as the actor's own. Those of parent keys count on both sides. */
export function requireToLoosen(actor: Principal, { keys }: Chain, key: ApiKey, catalog: Catalog): void {
  const closer = closerRestriction(actor.chain.keys, [key, ...keys.slice(1)], catalog);
  if (closer !== undefined) throw denied(actor, `${RULE}this key ${closer}.`);
}

/**
 * The grants that a key did not have before. Grants included in a role that it loses are not new, so that a role can be
 * narrowed. Grants included in a role that it keeps are new, since they would outlast the role.
 */
export function addedGrants(
  before: Grants,
  after: Grants,
  catalog: Catalog,
): { roles: Role[]; permissions: Permission[] } {
  const lost = before.roles.filter((role) => !after.roles.includes(role));
  const roles = after.roles.filter(
    (role) => !before.roles.includes(role) && !lost.some((one) => catalog.includes(one, role)),
  );
  if (after.permissions.every((permission) => before.permissions.includes(permission)))
    return { roles, permissions: [] };
  const held = new PermissionSet([...before.permissions, ...lost.flatMap((role) => catalog.permissionsOf(role))]);
  return { roles, permissions: new PermissionSet(after.permissions).missingFrom(held) };
}

export const MAX_NAMED = 20;
