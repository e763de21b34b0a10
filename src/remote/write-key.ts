import type { DeclaredKey } from '../keys/apply/declaration.ts';
import type { KeyChange, NewKey } from '../keys/key/api-key.ts';
import type { Catalog, Permission } from '../keys/permissions/catalog.ts';
import { parsePermissions, parseRoles } from '../keys/permissions/grants.ts';
import { splitPermission } from '../keys/permissions/permission-set.ts';
import { formatTime, readDate } from '../keys/time.ts';

/** A new key, or changes of one, as the schema takes them. Their values are valid. */
export function changeInput(
  { roles, permissions, expiresAt, ...change }: KeyChange | NewKey,
  catalog: Catalog,
): object {
  return {
    ...change,
    roles: roles && parseRoles(roles, catalog).values,
    permissions: permissions && permissionsInput(parsePermissions(permissions, catalog).values),
    // The command line takes forms that the schema does not.
    expiresAt: expiresAt ? formatTime(readDate(expiresAt) ?? null) : expiresAt,
  };
}

/** A declared key as the schema takes it. */
export function declaredInput({ permissions, expiresAt, ...key }: DeclaredKey): object {
  return { ...key, permissions: permissionsInput(permissions), expiresAt: formatTime(expiresAt) };
}

/** One by one: grouped by their resources, they would lose their order. */
function permissionsInput(permissions: readonly Permission[]): object[] {
  return permissions.map((permission) => {
    const [resource, action] = splitPermission(permission);
    return { resource, actions: [action] };
  });
}
