import { ACTIONS, type Action, type Catalog, type Permission, type Role } from './catalog.ts';

/** The actions that are allowed on one resource. */
export interface ResourceActions {
  resource: string;
  actions: Action[];
}

const BITS = new Map<string, number>(ACTIONS.map((action, index) => [action, 1 << index]));
/** With each `X_ANY` comes `X_OWN`, which stands one place to its left in the mask. */
const ANY_BITS = ACTIONS.reduce((mask, action) => (action.endsWith('_ANY') ? mask | BITS.get(action)! : mask), 0);

/** An immutable set of permissions, closed under "`X_ANY` includes `X_OWN`". */
export class PermissionSet {
  readonly #masks = new Map<string, number>();

  constructor(permissions: Iterable<Permission>) {
    for (const permission of permissions) {
      const [resource, action] = splitPermission(permission);
      const bit = BITS.get(action) ?? 0;
      this.#masks.set(resource, (this.#masks.get(resource) ?? 0) | bit | ((bit & ANY_BITS) << 1));
    }
  }

  /** What roles and single permissions allow together, by the catalog of this installation. */
  static of(catalog: Catalog, granted: { roles: readonly Role[]; permissions: readonly Permission[] }): PermissionSet {
    return new PermissionSet([...granted.roles.flatMap((role) => catalog.permissionsOf(role)), ...granted.permissions]);
  }

  has(resource: string, action: Action): boolean {
    return ((this.#masks.get(resource) ?? 0) & BITS.get(action)!) !== 0;
  }

  /** The permissions of this set that another one lacks. */
  missingFrom(other: PermissionSet): Permission[] {
    return this.permissions().filter((permission) => !other.has(...splitPermission(permission)));
  }

  /** All permissions, `X_OWN` beside its `X_ANY` included, in the order in which the resources came. */
  permissions(): Permission[] {
    return this.byResource().flatMap(({ resource, actions }) =>
      actions.map((action): Permission => `${resource}:${action}`),
    );
  }

  /** One entry a resource, its actions in the order of `ACTIONS`. */
  byResource(): ResourceActions[] {
    return Array.from(this.#masks, ([resource, mask]) => ({
      resource,
      actions: ACTIONS.filter((action) => (mask & BITS.get(action)!) !== 0),
    }));
  }
}

/** Splits `DOCKER:READ_ANY` at its colon. */
export function splitPermission(permission: Permission): [resource: string, action: Action] {
  const colon = permission.indexOf(':');
  return [permission.slice(0, colon), permission.slice(colon + 1) as Action];
}

/** Groups permissions by resource, as they were granted: nothing is added or left out. */
export function groupPermissions(permissions: readonly Permission[]): ResourceActions[] {
  const groups = new Map<string, Action[]>();
  for (const permission of permissions) {
    const [resource, action] = splitPermission(permission);
    groups.set(resource, [...(groups.get(resource) ?? []), action]);
  }
  return Array.from(groups, ([resource, actions]) => ({ resource, actions }));
}
