import { madeOnce } from '../basics/index.ts';
import { type Action, ACTIONS, type Catalog, type Permission, type Role } from './catalog.ts';

/** The allowed actions on one resource. */
export interface ResourceActions {
  /** The name of the resource. */
  resource: string;
  /** The actions. */
  actions: Action[];
}

const BITS = new Map<string, number>(ACTIONS.map((action, index) => [action, 1 << index]));
/** Each `X_ANY` implies `X_OWN`, which is the next higher bit. */
const ANY_BITS = ACTIONS.reduce((mask, action) => (action.endsWith('_ANY') ? mask | BITS.get(action)! : mask), 0);

/**
 * An immutable set of permissions, in which `X_ANY` includes `X_OWN`.
 * @example
 * new PermissionSet(['DOCKER:READ_ANY']).has('DOCKER', 'READ_OWN'); // true
 */
export class PermissionSet {
  readonly #masks = new Map<string, number>();

  /** The set of these permissions and those that they include. */
  constructor(permissions: Iterable<Permission> = []) {
    for (const permission of permissions) {
      const [resource, action] = splitPermission(permission);
      const bit = BITS.get(action) ?? 0;
      this.#masks.set(resource, (this.#masks.get(resource) ?? 0) | bit | ((bit & ANY_BITS) << 1));
    }
  }

  /**
   * The permissions of roles and single grants together, in an installation with this catalog. Unknown grants allow
   * nothing. Equal grants share one set.
   */
  static of(catalog: Catalog, granted: { roles: readonly Role[]; permissions: readonly Permission[] }): PermissionSet {
    const known = knownSets(catalog);
    const grants = JSON.stringify([granted.roles, granted.permissions]);
    let set = known.get(grants);
    if (set) return set;
    set = new PermissionSet();
    for (const role of granted.roles) set.#add(setOf(catalog.permissionsOf(role)));
    set.#add(new PermissionSet(granted.permissions.filter((permission) => catalog.knows(permission))));
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(grants, set);
    return set;
  }

  /** True if an action on a resource is allowed. */
  has(resource: string, action: Action): boolean {
    return ((this.#masks.get(resource) ?? 0) & BITS.get(action)!) !== 0;
  }

  /** The permissions in both sets: this set itself, if the other one has them all. */
  intersection(other: PermissionSet): PermissionSet {
    const both = new PermissionSet();
    let isWhole = true;
    for (const [resource, mask] of this.#masks) {
      const shared = mask & (other.#masks.get(resource) ?? 0);
      if (shared !== 0) both.#masks.set(resource, shared);
      if (shared !== mask) isWhole = false;
    }
    return isWhole ? this : both;
  }

  /** The permissions of this set that another one lacks. */
  missingFrom(other: PermissionSet): Permission[] {
    const missing = new PermissionSet();
    for (const [resource, mask] of this.#masks) {
      const lacking = mask & ~(other.#masks.get(resource) ?? 0);
      if (lacking !== 0) missing.#masks.set(resource, lacking);
    }
    return missing.permissions();
  }

  /** All permissions, included ones too, grouped by resource in the order of insertion. */
  permissions(): Permission[] {
    return this.byResource().flatMap(({ resource, actions }) =>
      actions.map((action): Permission => `${resource}:${action}`),
    );
  }

  #add(other: PermissionSet): void {
    for (const [resource, mask] of other.#masks) this.#masks.set(resource, (this.#masks.get(resource) ?? 0) | mask);
  }

  /** One entry per resource, its actions in the order of `ACTIONS`. */
  byResource(): ResourceActions[] {
    return Array.from(this.#masks, ([resource, mask]) => ({
      resource,
      actions: ACTIONS.filter((action) => (mask & BITS.get(action)!) !== 0),
    }));
  }
}

/** How many different grants of an installation are remembered: most keys share their grants with others. */
const MAX_KNOWN = 1000;
const knownSets = madeOnce<Catalog, Map<string, PermissionSet>>(() => new Map());

/** The set of a list that never changes, such as a role's, since parsing the list takes longest. */
const setOf = madeOnce((permissions: readonly Permission[]) => new PermissionSet(permissions));

/** Splits `DOCKER:READ_ANY` at its colon. */
export function splitPermission(permission: Permission): [resource: string, action: Action] {
  const colon = permission.indexOf(':');
  return [permission.slice(0, colon), permission.slice(colon + 1) as Action];
}

/** Groups permissions by resource exactly as granted, without included ones. */
export function groupPermissions(permissions: readonly Permission[]): ResourceActions[] {
  const groups = new Map<string, Action[]>();
  for (const permission of permissions) {
    const [resource, action] = splitPermission(permission);
    groups.set(resource, [...(groups.get(resource) ?? []), action]);
  }
  return Array.from(groups, ([resource, actions]) => ({ resource, actions }));
}
