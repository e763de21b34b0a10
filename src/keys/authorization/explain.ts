import type { ApiKey } from '../key/api-key.ts';
import { type Catalog, type Permission, ROLE_MEANINGS, type Role } from '../permissions/catalog.ts';
import { assertValid } from '../errors.ts';
import { parsePermissions } from '../permissions/grants.ts';
import { PermissionSet, splitPermission } from '../permissions/permission-set.ts';

/** Reads one permission. @throws ValidationError PERMISSION_INVALID */
export function readPermission(text: string, catalog: Catalog): Permission {
  const { values, issues } = parsePermissions([text], catalog);
  assertValid(issues);
  return values[0]!;
}

/** Which roles and permissions of a key allow this. None where it is not allowed. */
export function grantsBehind(
  key: Pick<ApiKey, 'roles' | 'permissions'>,
  permission: Permission,
  catalog: Catalog,
): (Role | Permission)[] {
  const [resource, action] = splitPermission(permission);
  const allows = (roles: Role[], permissions: Permission[]) =>
    PermissionSet.of(catalog, { roles, permissions }).has(resource, action);
  return [...key.roles.filter((role) => allows([role], [])), ...key.permissions.filter((grant) => allows([], [grant]))];
}

/** How a grant is named in a text: `role ADMIN` or `permission DOCKER:READ_ANY`. */
export function describeGrant(grant: Role | Permission): string {
  return grant in ROLE_MEANINGS ? `role ${grant}` : `permission ${grant}`;
}
