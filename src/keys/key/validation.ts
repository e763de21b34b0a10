import type { KeyChange, NewKey } from './api-key.ts';
import type { Catalog, Permission, Role } from '../permissions/catalog.ts';
import { validateDescription } from './description.ts';
import type { Issue } from '../errors.ts';
import { validateExpiry } from './expiry.ts';
import { parsePermissions, parseRoles } from '../permissions/grants.ts';
import { validateName } from './name.ts';

/** All that is wrong with what a new key is to be. A name that is missing is left to the caller, who may still ask for it. */
export function validateNewKey(input: Partial<NewKey>, catalog: Catalog, now: number): Issue[] {
  return [...validateChange(input, catalog, now), ...validateGrants(input.roles ?? [], input.permissions ?? [])];
}

/** All that is wrong with the values that are given. */
export function validateChange(change: KeyChange, catalog: Catalog, now: number): Issue[] {
  const { name, description, roles = [], permissions = [] } = change;
  const texts = [
    name === undefined ? undefined : validateName(name),
    description === undefined || description === null ? undefined : validateDescription(description),
  ];
  return [
    ...texts.filter((issue) => issue !== undefined),
    ...parseRoles(roles, catalog).issues,
    ...parsePermissions(permissions, catalog).issues,
    ...validateExpiry(change, now),
  ];
}

/** Asks for at least one role or permission. Items that are wrong count: they are issues of their own. */
export function validateGrants(roles: readonly unknown[], permissions: readonly unknown[]): Issue[] {
  if (roles.length > 0 || permissions.length > 0) return [];
  return [{ code: 'NO_GRANTS', message: 'An API key needs at least one role or permission.' }];
}

/** Roles and permissions, read from texts that were checked. */
export function readGrants(
  input: Pick<NewKey, 'roles' | 'permissions'>,
  catalog: Catalog,
): { roles: Role[]; permissions: Permission[] } {
  return {
    roles: parseRoles(input.roles ?? [], catalog).values,
    permissions: parsePermissions(input.permissions ?? [], catalog).values,
  };
}
