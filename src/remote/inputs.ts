import { formatTime, readDate } from '../keys/basics/index.ts';
import type { KeyChange } from '../keys/key/index.ts';
import {
  type Catalog,
  parsePermissions,
  parseRoles,
  type Permission,
  splitPermission,
} from '../keys/permissions/index.ts';

/** Changes of a key as input of the schema. Their values are valid. */
export function changeInput({ roles, permissions, expiresAt, ...change }: KeyChange, catalog: Catalog) {
  return {
    ...change,
    roles: roles && parseRoles(roles, catalog).values,
    permissions: permissions && permissionsInput(parsePermissions(permissions, catalog).values),
    // The command line accepts forms that the schema does not.
    expiresAt: expiresAt
      ? formatTime(expiresAt instanceof Date ? expiresAt.getTime() : (readDate(expiresAt) ?? null))
      : expiresAt,
  };
}

/** One by one: grouping by resource would lose their order. */
export function permissionsInput(permissions: readonly Permission[]) {
  return permissions.map((permission) => {
    const [resource, action] = splitPermission(permission);
    return { resource, actions: [action] };
  });
}
