import { ACTIONS, type Action, type Catalog, type Grant, type Role } from './catalog.ts';

/** The actions that are allowed on one resource. */
export interface Permission {
  resource: string;
  actions: Action[];
}

const BITS = new Map<string, number>(ACTIONS.map((action, index) => [action, 1 << index]));
/** With each `X_ANY` comes `X_OWN`, which stands one place to its left in the mask. */
const ANY_BITS = ACTIONS.reduce((mask, action) => (action.endsWith('_ANY') ? mask | BITS.get(action)! : mask), 0);

/** An immutable set of permissions, closed under "`X_ANY` includes `X_OWN`". */
export class PermissionSet {
  readonly #masks = new Map<string, number>();

  constructor(grants: Iterable<Grant>) {
    for (const grant of grants) {
      const [resource, action] = splitGrant(grant);
      const bit = BITS.get(action) ?? 0;
      this.#masks.set(resource, (this.#masks.get(resource) ?? 0) | bit | ((bit & ANY_BITS) << 1));
    }
  }

  /** What roles and single permissions allow together, by the catalog of this installation. */
  static of(catalog: Catalog, granted: { roles: readonly Role[]; permissions: readonly Grant[] }): PermissionSet {
    return new PermissionSet([...granted.roles.flatMap((role) => catalog.grantsOf(role)), ...granted.permissions]);
  }

  has(resource: string, action: Action): boolean {
    return ((this.#masks.get(resource) ?? 0) & BITS.get(action)!) !== 0;
  }

  /** The grants of this set that another one lacks. */
  missingFrom(other: PermissionSet): Grant[] {
    return this.grants().filter((grant) => !other.has(...splitGrant(grant)));
  }

  /** All grants, `X_OWN` beside its `X_ANY` included, in the order in which the resources came. */
  grants(): Grant[] {
    return this.toPermissions().flatMap(({ resource, actions }) =>
      actions.map((action): Grant => `${resource}:${action}`),
    );
  }

  /** One entry a resource, its actions in the order of `ACTIONS`. */
  toPermissions(): Permission[] {
    return Array.from(this.#masks, ([resource, mask]) => ({
      resource,
      actions: ACTIONS.filter((action) => (mask & BITS.get(action)!) !== 0),
    }));
  }
}

/** Splits `DOCKER:READ_ANY` at its colon. */
export function splitGrant(grant: Grant): [resource: string, action: Action] {
  const colon = grant.indexOf(':');
  return [grant.slice(0, colon), grant.slice(colon + 1) as Action];
}

/** Groups grants by resource, as they were granted: nothing is added or left out. */
export function groupGrants(grants: readonly Grant[]): Permission[] {
  const groups = new Map<string, Action[]>();
  for (const grant of grants) {
    const [resource, action] = splitGrant(grant);
    groups.set(resource, [...(groups.get(resource) ?? []), action]);
  }
  return Array.from(groups, ([resource, actions]) => ({ resource, actions }));
}
