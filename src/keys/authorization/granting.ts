import { KeysError } from '../errors.ts';
import type { ApiKey } from '../key/api-key.ts';
import type { Catalog, Permission, Role } from '../permissions/catalog.ts';
import { PermissionSet } from '../permissions/permission-set.ts';
import { listOf } from '../text.ts';
import { formatTime } from '../time.ts';
import { type Chain, chainExpiry, chainRoles, MAX_CHAIN_LENGTH } from './chain.ts';
import { type Actor, denied, forbidden, OPERATOR, type Principal, requirePermission } from './principal.ts';

type Grants = Pick<ApiKey, 'roles' | 'permissions'>;

const RULE = 'A key cannot grant more than it holds: ';

/**
 * Refuses an actor that may not create a key with these grants and this expiry.
 * @throws ForbiddenError; KeysError CHAIN_TOO_LONG
 */
export function requireToCreate(actor: Actor, key: Grants & Pick<ApiKey, 'expiresAt'>, catalog: Catalog): void {
  if (actor === OPERATOR) return;
  requirePermission(actor, 'API_KEY', 'CREATE_OWN');
  requireToGrant(actor, key, catalog);
  requireToOutlive(actor, key.expiresAt);
  if (actor.chain.keys.length >= MAX_CHAIN_LENGTH) throw chainTooLong();
}

/** The error for a key that would have too many ancestors. */
function chainTooLong(): KeysError {
  return new KeysError(
    'CHAIN_TOO_LONG',
    `A chain of keys that created one another has at most ${MAX_CHAIN_LENGTH} keys. Create the key by one further up.`,
  );
}

/**
 * Refuses an actor that may not change a key so. Less access needs nothing more than the right to change the key. More
 * access (added grants, a later expiry, enabling it) needs all that the key may do afterwards.
 * @param chain the key before the change, and its ancestors
 * @throws ForbiddenError
 */
export function requireToChange(actor: Actor, chain: Chain, after: ApiKey, catalog: Catalog): void {
  if (actor === OPERATOR) return;
  const [before] = chain.keys;
  requireToGrant(actor, addedGrants(before, after, catalog), catalog);
  if (endsLater(before, after)) requireToOutlive(actor, after.expiresAt);
  if (isWidened(before, after, catalog)) requireToHoldKey(actor, chain, after, catalog);
}

/** Whether a change lets a key do more: by added grants, a later expiry, or enabling it. */
export function isWidened(before: ApiKey, after: ApiKey, catalog: Catalog): boolean {
  const added = addedGrants(before, after, catalog);
  const isEnabled = before.disabledAt !== null && after.disabledAt === null;
  return added.roles.length + added.permissions.length > 0 || endsLater(before, after) || isEnabled;
}

function endsLater(before: ApiKey, after: ApiKey): boolean {
  return before.expiresAt !== null && (after.expiresAt === null || after.expiresAt > before.expiresAt);
}

/**
 * Refuses an actor that would make usable what it cannot do itself: a key that it enables, or whose secret it changes.
 * What is created beneath the actor can never do more than the actor.
 * @param chain the key and its ancestors
 * @param key the key as it is to be
 * @throws ForbiddenError
 */
export function requireToHoldKey(actor: Actor, chain: Chain, key: ApiKey, catalog: Catalog): void {
  if (actor === OPERATOR || chain.keys.some(({ id }) => id === actor.key.id)) return;
  requireToGrant(actor, key, catalog);
  requireToOutlive(actor, key.expiresAt);
}

/** Who grants a role holds that role; who grants a permission holds it. */
function requireToGrant(actor: Principal, { roles, permissions }: Grants, catalog: Catalog): void {
  const granted = PermissionSet.of(catalog, { roles, permissions });
  const missing = granted.missingFrom(actor.access);
  if (missing.length > 0) throw forbidden(actor, missing, RULE);
  const held = chainRoles(actor.chain, catalog);
  const foreign = roles.filter((role) => !held.has(role));
  if (foreign.length > 0) {
    const names = `${foreign.length === 1 ? 'role' : 'roles'} ${listOf(foreign)}`;
    throw denied(actor, `${RULE}this key does not hold the ${names}. Grant single permissions instead.`);
  }
  for (const permission of granted.permissions()) actor.observer?.used(permission);
}

/** Temporary access stays temporary: an expiry is no later than the actor's own, which counts its ancestors. */
function requireToOutlive(actor: Principal, expiresAt: number | null): void {
  const end = chainExpiry(actor.chain);
  if (end === null || (expiresAt !== null && expiresAt <= end)) return;
  throw denied(actor, `${RULE}this key expires at ${formatTime(end)}.`);
}

/**
 * The grants that a key gets anew. A permission of a role that it loses is not new: that is how a role is narrowed. One
 * of a role that it keeps is, since it would outlast the role.
 */
function addedGrants(before: Grants, after: Grants, catalog: Catalog): { roles: Role[]; permissions: Permission[] } {
  const lost = before.roles.filter((role) => !after.roles.includes(role));
  const held = PermissionSet.of(catalog, { roles: lost, permissions: before.permissions });
  return {
    roles: after.roles.filter((role) => !before.roles.includes(role)),
    permissions: new PermissionSet(after.permissions).missingFrom(held),
  };
}
