import type { ApiKey } from '../key/api-key.ts';
import type { Catalog, Grant } from '../permissions/catalog.ts';
import { PermissionSet, splitGrant } from '../permissions/permission-set.ts';

/** What a key could do with instead of what it has. */
export interface Suggestion {
  /** The smallest permissions that allow all that it has used. */
  permissions: Grant[];
  /** All that it may do and has never used. */
  unused: Grant[];
}

/** Compares what a key may do with what it has used. What it used and may do no longer is left out. */
export function suggestGrants(
  key: Pick<ApiKey, 'roles' | 'permissions'>,
  usedGrants: Iterable<Grant>,
  catalog: Catalog,
): Suggestion {
  const held = PermissionSet.of(catalog, key);
  const used = new PermissionSet([...usedGrants].filter((grant) => held.has(...splitGrant(grant))));
  const all = used.grants();
  const any = new Set(all.filter((grant) => grant.endsWith('_ANY')));
  return {
    permissions: all.filter((grant) => any.has(grant) || !any.has(grant.replace(/_OWN$/, '_ANY') as Grant)).toSorted(),
    unused: held.missingFrom(used),
  };
}
