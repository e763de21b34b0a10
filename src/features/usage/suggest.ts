import { type Chain, chainAccess, chainHolds } from '../../keys/authorization/index.ts';
import { declarePort } from '../../keys/basics/index.ts';
import { type KeyUse, ROUTE, TOOL, type UsedGrant } from '../../keys/key/index.ts';
import {
  type Catalog,
  type Permission,
  PermissionSet,
  type Role,
  splitPermission,
  withoutIncluded,
} from '../../keys/permissions/index.ts';

interface UsedGrantFinder {
  /**
   * The permissions that keys have used and the roles that they granted, by key id, each with the time of its last use,
   * in milliseconds since 1970.
   */
  of(ids: readonly string[]): Promise<Map<string, Map<UsedGrant, number>>>;
}

/** Writes which grants were used, in a transaction that only counts. */
interface UsedGrantWriter extends UsedGrantFinder {
  /** Adds the grants of these uses. Keys that no longer exist are ignored. */
  add(uses: readonly KeyUse[]): Promise<void>;
  /** Removes the used grants of deleted keys. */
  forget(ids: readonly string[]): Promise<void>;
}
export const USED_GRANTS = declarePort<UsedGrantFinder, UsedGrantWriter>('used-grants');

/** A tool of an MCP server that a key has called. */
export interface UsedTool {
  name: string;
  /** When it was last called, in milliseconds since 1970. */
  lastUsedAt: number;
}

export interface Suggestion {
  /** The roles that it has granted to other keys, without those that another one includes. */
  roles: Role[];
  /** The smallest set of permissions that, with those roles, allows everything that the key has used. */
  permissions: Permission[];
  unused: Permission[];
  /** The tools of MCP servers that it has called, by their names. */
  tools: UsedTool[];
  /** The routes that let its requests pass, as `describePattern` writes them. */
  routes: string[];
}

/** Compares the grants of a key with its use. Grants that it used but no longer holds are ignored. */
export function suggestGrants(chain: Chain, usedGrants: ReadonlyMap<UsedGrant, number>, catalog: Catalog): Suggestion {
  const held = chainAccess(chain, catalog);
  const { roles: granted, permissions: usedPermissions, tools, routes } = splitUsed(usedGrants);
  const heldRoles = granted.filter((role) => catalog.knows(role) && chainHolds(chain, role, catalog));
  const roles = heldRoles.filter((role) => !heldRoles.some((one) => one !== role && catalog.includes(one, role)));
  const used = new PermissionSet(usedPermissions.filter((permission) => held.has(...splitPermission(permission))));
  const byRoles = PermissionSet.of(catalog, { roles, permissions: [] });
  const needed = used.missingFrom(byRoles);
  return {
    roles: roles.toSorted(),
    permissions: withoutIncluded(needed).toSorted(),
    unused: held.missingFrom(used),
    tools,
    routes,
  };
}

/** Splits the used grants of a key by kind. Tools and routes are sorted. @param used with the times of the last use */
export function splitUsed(used: ReadonlyMap<UsedGrant, number>) {
  const [roles, permissions, tools, routes]: [Role[], Permission[], UsedTool[], string[]] = [[], [], [], []];
  for (const [grant, lastUsedAt] of used)
    if (grant.startsWith(ROLE)) roles.push(grant.slice(ROLE.length));
    else if (grant.startsWith(TOOL)) tools.push({ name: grant.slice(TOOL.length), lastUsedAt });
    else if (grant.startsWith(ROUTE)) routes.push(grant.slice(ROUTE.length));
    else permissions.push(grant as Permission);
  return {
    roles,
    permissions,
    tools: tools.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
    routes: routes.toSorted(),
  };
}

const ROLE = 'role:';
