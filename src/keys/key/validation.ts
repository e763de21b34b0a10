import type { KeyChange, NewKey } from './api-key.ts';
import type { Catalog, Grant, Role } from '../permissions/catalog.ts';
import { descriptionFault } from './description.ts';
import type { Fault } from '../errors.ts';
import { expiryFaults } from './expiry.ts';
import { parsePermissions, parseRoles } from '../permissions/grants.ts';
import { nameFault } from './name.ts';

/** All that is wrong with what a new key is to be. A name that is missing is left to the caller, who may still ask for it. */
export function faultsOfNewKey(input: Partial<NewKey>, catalog: Catalog, now: number): Fault[] {
  return [...faultsOfChange(input, catalog, now), ...grantsFault(input.roles ?? [], input.permissions ?? [])];
}

/** All that is wrong with the values that are given. */
export function faultsOfChange(change: KeyChange, catalog: Catalog, now: number): Fault[] {
  const { name, description, roles = [], permissions = [] } = change;
  const texts = [
    name === undefined ? undefined : nameFault(name),
    description === undefined || description === null ? undefined : descriptionFault(description),
  ];
  return [
    ...texts.filter((fault) => fault !== undefined),
    ...parseRoles(roles, catalog).faults,
    ...parsePermissions(permissions, catalog).faults,
    ...expiryFaults(change, now),
  ];
}

/** Asks for at least one role or permission. Items that are wrong count: they are faults of their own. */
export function grantsFault(roles: readonly unknown[], permissions: readonly unknown[]): Fault[] {
  if (roles.length > 0 || permissions.length > 0) return [];
  return [{ code: 'NO_GRANTS', message: 'An API key needs at least one role or permission.' }];
}

/** Roles and permissions, read from texts that were checked. */
export function readGrants(
  input: Pick<NewKey, 'roles' | 'permissions'>,
  catalog: Catalog,
): { roles: Role[]; permissions: Grant[] } {
  return {
    roles: parseRoles(input.roles ?? [], catalog).values,
    permissions: parsePermissions(input.permissions ?? [], catalog).values,
  };
}
