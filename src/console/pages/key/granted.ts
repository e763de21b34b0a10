import { type Permission, PermissionSet } from '../../../keys/permissions/index.ts';
import { permissionsOf } from '../../parts/grants.ts';
import type { ShownKey } from './shown-key.ts';

/** All that the grants of a key say, whatever the keys above it take away. */
export function grantedTo({ effectivePermissions, limitedBy }: ShownKey): PermissionSet {
  const taken = limitedBy.flatMap(({ permissions }) => permissions);
  return new PermissionSet(permissionsOf([...effectivePermissions, ...taken]) as Permission[]);
}
