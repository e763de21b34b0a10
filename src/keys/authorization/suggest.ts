import type { ApiKey } from '../key/api-key.ts';
import type { Catalog, Permission } from '../permissions/catalog.ts';
import { PermissionSet, splitPermission } from '../permissions/permission-set.ts';

/** What a key could do with instead of what it has. */
export interface Suggestion {
  /** The smallest permissions that allow all that it has used. */
  permissions: Permission[];
  /** All that it may do and has never used. */
  unused: Permission[];
}

/** Compares what a key may do with what it has used. What it used and may do no longer is left out. */
export function suggestGrants(
  key: Pick<ApiKey, 'roles' | 'permissions'>,
  usedGrants: Iterable<Permission>,
  catalog: Catalog,
): Suggestion {
  const held = PermissionSet.of(catalog, key);
  const used = new PermissionSet([...usedGrants].filter((grant) => held.has(...splitPermission(grant))));
  const all = used.permissions();
  const any = new Set(all.filter((grant) => grant.endsWith('_ANY')));
  return {
    permissions: all
      .filter((grant) => any.has(grant) || !any.has(grant.replace(/_OWN$/, '_ANY') as Permission))
      .toSorted(),
    unused: held.missingFrom(used),
  };
}
