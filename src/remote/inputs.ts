import { formatTime, readDate } from '../keys/basics/index.ts';
import type { KeyChange } from '../keys/key/index.ts';
import {
  type Catalog,
  parsePermissions,
  parseRoles,
  type Permission,
  splitPermission,
} from '../keys/permissions/index.ts';

/** Changes of a key as the schema takes them. Their values are valid. */
export function changeInput({ roles, permissions, expiresAt, ...change }: KeyChange, catalog: Catalog) {
  return {
    ...change,
    roles: roles && parseRoles(roles, catalog).values,
    permissions: permissions && permissionsInput(parsePermissions(permissions, catalog).values),
    // The command line takes forms that the schema does not.
    expiresAt: expiresAt
      ? formatTime(expiresAt instanceof Date ? expiresAt.getTime() : (readDate(expiresAt) ?? null))
      : expiresAt,
  };
}

/** One by one: grouped by their resources, they would lose their order. */
export function permissionsInput(permissions: readonly Permission[]) {
  return permissions.map((permission) => {
    const [resource, action] = splitPermission(permission);
    return { resource, actions: [action] };
  });
}
