import type { ApiKey } from '../key/api-key.ts';
import { type Catalog, type Permission, ROLE_MEANINGS, type Role } from '../permissions/catalog.ts';
import { assertValid } from '../errors.ts';
import { parsePermissions } from '../permissions/grants.ts';
import { PermissionSet, splitPermission } from '../permissions/permission-set.ts';

/** Parses one permission. @throws ValidationError PERMISSION_INVALID */
export function readPermission(text: string, catalog: Catalog): Permission {
  const { values, issues } = parsePermissions([text], catalog);
  assertValid(issues);
  return values[0]!;
}

/** The roles and permissions of a key that allow an action; none if it is not allowed. */
export function grantsBehind(
  key: Pick<ApiKey, 'roles' | 'permissions'>,
  permission: Permission,
  catalog: Catalog,
): (Role | Permission)[] {
  const [resource, action] = splitPermission(permission);
  const allows = (roles: Role[], permissions: Permission[]) =>
    PermissionSet.of(catalog, { roles, permissions }).has(resource, action);
  return [
    ...key.roles.filter((role) => allows([role], [])),
    ...key.permissions.filter((granted) => allows([], [granted])),
  ];
}

/** A grant in prose: `role ADMIN` or `permission DOCKER:READ_ANY`. */
export function describeGrant(grant: Role | Permission): string {
  return grant in ROLE_MEANINGS ? `role ${grant}` : `permission ${grant}`;
}
