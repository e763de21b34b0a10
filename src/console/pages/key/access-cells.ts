import type { Action, Permission } from '../../../keys/permissions/catalog.ts';
import { PermissionSet, type ResourceActions } from '../../../keys/permissions/permission-set.ts';
import { permissionsOf, SHOWN_ACTIONS } from '../../parts/grants.ts';
import { grantedTo } from './granted.ts';
import type { ShownKey } from './shown-key.ts';

/** A role with what it includes. */
export interface RoleGrants {
  readonly role: string;
  readonly permissions: readonly ResourceActions[];
}

/** Everything that can be granted, as far as the person may know it. */
export interface KnownCatalog {
  readonly roles: readonly RoleGrants[];
  readonly resources: readonly string[];
}

/** What a key may do to a resource. */
export interface Cell {
  readonly action: Action;
  /** Whether it was ever used; `taken` if a parent key takes it away, `none` if it was not granted. */
  readonly state: 'used' | 'unused' | 'taken' | 'none';
  /** The roles and permissions that say so; empty if that cannot be told. */
  readonly grantedBy: readonly string[];
  /** The name of the nearest parent key that takes it away. */
  readonly takenBy?: string;
}

/** A resource with what a key may do to it. */
export interface Row {
  readonly resource: string;
  readonly cells: readonly Cell[];
}

/** The resources to which a key may do something, or could if no parent key took that away. */
export function buildRows(key: ShownKey, catalog: KnownCatalog | undefined): Row[] {
  const granted = grantedTo(key);
  const grants = grantsOf(key, catalog);
  const used = new PermissionSet(permissionsOf(key.usedPermissions) as Permission[]);
  const takers = key.limitedBy.map(({ name, permissions }) => ({
    name: name ?? 'a parent key',
    taken: new Set(permissionsOf(permissions)),
  }));
  const cellOf = (resource: string, action: Action): Cell => {
    if (!granted.has(resource, action)) return { action, state: 'none', grantedBy: [] };
    const grantedBy = grants.filter(({ allows }) => allows.has(resource, action)).map(({ grant }) => grant);
    const taker = takers.find(({ taken }) => taken.has(`${resource}:${action}`));
    if (taker) return { action, state: 'taken', grantedBy, takenBy: taker.name };
    return { action, state: used.has(resource, action) ? 'used' : 'unused', grantedBy };
  };
  return granted.byResource().map(({ resource }) => ({
    resource,
    cells: SHOWN_ACTIONS.map((action) => cellOf(resource, action)),
  }));
}

/** The grants of a key with what each allows. What roles include is known from the catalog alone. */
function grantsOf({ roles, permissions }: ShownKey, catalog: KnownCatalog | undefined) {
  const known = roles.flatMap((role) => {
    const grants = catalog?.roles.find((one) => one.role === role);
    return grants ? [{ grant: `role ${role}`, permissions: permissionsOf(grants.permissions) }] : [];
  });
  const single = permissionsOf(permissions).map((grant) => ({ grant, permissions: [grant] }));
  return [...known, ...single].map((one) => ({
    grant: one.grant,
    allows: new PermissionSet(one.permissions as Permission[]),
  }));
}
