import type { Permission } from '../permissions/catalog.ts';
import { PermissionSet, splitPermission } from '../permissions/permission-set.ts';

/** Narrower grants for a key. */
export interface Suggestion {
  /** The smallest set of permissions that allows everything the key has used. */
  permissions: Permission[];
  /** The permissions that it holds and has never used. */
  unused: Permission[];
}

/** Compares what a key holds with what it has used. Permissions that it has used but no longer holds are ignored. */
export function suggestGrants(held: PermissionSet, usedPermissions: Iterable<Permission>): Suggestion {
  const used = new PermissionSet([...usedPermissions].filter((permission) => held.has(...splitPermission(permission))));
  const all = used.permissions();
  const any = new Set(all.filter((permission) => permission.endsWith('_ANY')));
  return {
    permissions: all
      .filter((permission) => any.has(permission) || !any.has(permission.replace(/_OWN$/, '_ANY') as Permission))
      .toSorted(),
    unused: held.missingFrom(used),
  };
}
