import type { Permission } from '../../../keys/permissions/catalog.ts';
import { PermissionSet } from '../../../keys/permissions/permission-set.ts';
import { permissionsOf } from '../../parts/grants.ts';
import type { ShownKey } from './shown-key.ts';

/** All that the grants of a key say, whatever its parent keys take away. */
export function grantedTo({ effectivePermissions, limitedBy }: ShownKey): PermissionSet {
  const taken = limitedBy.flatMap(({ permissions }) => permissions);
  return new PermissionSet(permissionsOf([...effectivePermissions, ...taken]) as Permission[]);
}
