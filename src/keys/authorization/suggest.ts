import type { UsedGrant } from '../key/usage.ts';
import type { Catalog, Permission, Role } from '../permissions/catalog.ts';
import { PermissionSet, splitPermission } from '../permissions/permission-set.ts';
import { type Chain, chainAccess, chainHolds } from './chain.ts';

/** Narrower grants for a key. */
export interface Suggestion {
  /** The roles that it has granted to other keys, without those that another of them includes. */
  roles: Role[];
  /** The smallest set of permissions that, with those roles, allows everything that the key has used. */
  permissions: Permission[];
  /** The permissions that it holds and has never used. */
  unused: Permission[];
}

/** Compares what a key holds with what it has used. What it has used but no longer holds is ignored. */
export function suggestGrants(chain: Chain, usedGrants: Iterable<UsedGrant>, catalog: Catalog): Suggestion {
  const held = chainAccess(chain, catalog);
  const { roles: granted, permissions: usedPermissions } = splitUsed(usedGrants);
  const heldRoles = granted.filter((role) => catalog.knows(role) && chainHolds(chain, role, catalog));
  const roles = heldRoles.filter((role) => !heldRoles.some((one) => one !== role && catalog.includes(one, role)));
  const used = new PermissionSet(usedPermissions.filter((permission) => held.has(...splitPermission(permission))));
  const byRoles = PermissionSet.of(catalog, { roles, permissions: [] });
  const needed = used.missingFrom(byRoles);
  const any = new Set(needed.filter((permission) => permission.endsWith('_ANY')));
  return {
    roles: roles.toSorted(),
    permissions: needed
      .filter((permission) => any.has(permission) || !any.has(permission.replace(/_OWN$/, '_ANY') as Permission))
      .toSorted(),
    unused: held.missingFrom(used),
  };
}

/** Tells the roles that a key has granted from the permissions that it has used. */
export function splitUsed(used: Iterable<UsedGrant>): { roles: Role[]; permissions: Permission[] } {
  const [roles, permissions]: [Role[], Permission[]] = [[], []];
  for (const grant of used)
    if (grant.startsWith(ROLE)) roles.push(grant.slice(ROLE.length));
    else permissions.push(grant as Permission);
  return { roles, permissions };
}

const ROLE = 'role:';
