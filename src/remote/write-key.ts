import type { DeclaredKey } from '../keys/apply/declaration.ts';
import type { KeyChange, NewKey } from '../keys/key/api-key.ts';
import type { Catalog, Permission } from '../keys/permissions/catalog.ts';
import { parsePermissions, parseRoles } from '../keys/permissions/grants.ts';
import { splitPermission } from '../keys/permissions/permission-set.ts';
import { formatTime, readDate } from '../keys/time.ts';

/** A new key as the schema takes it. Its values are valid. */
export function newKeyInput(input: NewKey, catalog: Catalog): object {
  return { ...changeInput(input, catalog), ...(input.overwrite !== undefined && { overwrite: input.overwrite }) };
}

/** Changes of a key as the schema takes them. Their values are valid. */
export function changeInput(change: KeyChange, catalog: Catalog): object {
  const { name, description, roles, permissions, limits, allowFrom, expiresIn, expiresAt } = change;
  return {
    name,
    description,
    roles: roles && parseRoles(roles, catalog).values,
    permissions: permissions && permissionsInput(parsePermissions(permissions, catalog).values),
    limits,
    allowFrom,
    expiresIn,
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
