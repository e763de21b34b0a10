import type { ApiKey } from '../key/api-key.ts';
import { type Catalog, type Grant, ROLE_MEANINGS, type Role } from '../permissions/catalog.ts';
import { refuseFaults } from '../errors.ts';
import { parsePermissions } from '../permissions/grants.ts';
import { PermissionSet, splitGrant } from '../permissions/permission-set.ts';

/** Reads one permission. @throws ValidationError PERMISSION_INVALID */
export function readPermission(text: string, catalog: Catalog): Grant {
  const { values, faults } = parsePermissions([text], catalog);
  refuseFaults(faults);
  return values[0]!;
}

/** Which roles and permissions of a key allow this. None where it is not allowed. */
export function grantsBehind(
  key: Pick<ApiKey, 'roles' | 'permissions'>,
  permission: Grant,
  catalog: Catalog,
): (Role | Grant)[] {
  const [resource, action] = splitGrant(permission);
  const allows = (roles: Role[], permissions: Grant[]) =>
    PermissionSet.of(catalog, { roles, permissions }).has(resource, action);
  return [...key.roles.filter((role) => allows([role], [])), ...key.permissions.filter((grant) => allows([], [grant]))];
}

/** How a grant is named in a text: `role ADMIN` or `permission DOCKER:READ_ANY`. */
export function describeGrant(grant: Role | Grant): string {
  return grant in ROLE_MEANINGS ? `role ${grant}` : `permission ${grant}`;
}
