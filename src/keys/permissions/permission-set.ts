import { madeOnce } from '../basics/index.ts';
import { type Action, ACTIONS, type Catalog, type Permission, type Role, withOwn } from './catalog.ts';

/** The allowed actions on one resource. */
export interface ResourceActions {
  /** The name of the resource. */
  resource: string;
  /** The actions. */
  actions: Action[];
}

/**
 * An immutable set of permissions, in which `X_ANY` includes `X_OWN`.
 * @example
 * new PermissionSet(['WIKI:READ_ANY']).has('WIKI', 'READ_OWN'); // true
 */
export class PermissionSet {
  readonly #actions = new Map<string, ReadonlySet<Action>>();

  /** The set of these permissions and those that they include. */
  constructor(permissions: Iterable<Permission> = []) {
    for (const permission of permissions) {
      const [resource, action] = splitPermission(permission);
      this.#allow(resource, new Set(withOwn(action) as Action[]));
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
    return this.#actions.get(resource)?.has(action) ?? false;
  }

  /** The permissions in both sets: this set itself, if the other one has them all. */
  intersection(other: PermissionSet): PermissionSet {
    const both = new PermissionSet();
    let isWhole = true;
    for (const [resource, actions] of this.#actions) {
      const shared = new Set([...actions].filter((action) => other.has(resource, action)));
      if (shared.size > 0) both.#actions.set(resource, shared);
      if (shared.size < actions.size) isWhole = false;
    }
    return isWhole ? this : both;
  }

  /** The permissions of this set that another one lacks. */
  missingFrom(other: PermissionSet): Permission[] {
    const missing = new PermissionSet();
    for (const [resource, actions] of this.#actions) {
      const lacking = new Set([...actions].filter((action) => !other.has(resource, action)));
      if (lacking.size > 0) missing.#actions.set(resource, lacking);
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
    for (const [resource, actions] of other.#actions) this.#allow(resource, actions);
  }

  #allow(resource: string, actions: ReadonlySet<Action>): void {
    const had = this.#actions.get(resource);
    this.#actions.set(resource, had ? new Set([...had, ...actions]) : actions);
  }

  /** One entry per resource, its actions in the order of `ACTIONS`, and then those of the installation. */
  byResource(): ResourceActions[] {
    return Array.from(this.#actions, ([resource, actions]) => ({ resource, actions: [...actions].toSorted(byOrder) }));
  }
}

const ORDER: ReadonlyMap<Action, number> = new Map(ACTIONS.map((action, index) => [action, index]));

function byOrder(one: Action, other: Action): number {
  const [place, otherPlace] = [ORDER.get(one) ?? ORDER.size, ORDER.get(other) ?? ORDER.size];
  return place - otherPlace || (one < other ? -1 : 1);
}

/** How many different grants of an installation are remembered: most keys share their grants with others. */
const MAX_KNOWN = 1000;
const knownSets = madeOnce<Catalog, Map<string, PermissionSet>>(() => new Map());

/** The set of a list that never changes, such as a role's, since parsing the list takes longest. */
const setOf = madeOnce((permissions: readonly Permission[]) => new PermissionSet(permissions));

/** Splits `WIKI:READ_ANY` at its colon. */
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
