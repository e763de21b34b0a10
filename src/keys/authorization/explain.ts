import { assertValid } from '../basics/index.ts';
import { type ApiKey, ROUTE, type Status, TOOL, type UsedGrant, type UsedTool } from '../key/index.ts';
import {
  type Catalog,
  type Grant,
  parsePermissions,
  type Permission,
  PermissionSet,
  type Role,
  splitPermission,
  withoutIncluded,
} from '../permissions/index.ts';
import { type Chain, chainAccess, chainHolds, chainStatus, limitsOf } from './chain.ts';

/** Parses one permission. @throws ValidationError PERMISSION_INVALID */
export function readPermission(text: string, catalog: Catalog): Permission {
  const { values, issues } = parsePermissions([text], catalog);
  assertValid(issues);
  return values[0]!;
}

/** The roles and permissions of a key that allow an action; none if it is not allowed. */
function grantsBehind(key: Pick<ApiKey, 'roles' | 'permissions'>, permission: Permission, catalog: Catalog): Grant[] {
  const [resource, action] = splitPermission(permission);
  const allows = (permissions: readonly Permission[]) => new PermissionSet(permissions).has(resource, action);
  return [
    ...key.roles.filter((role) => allows(catalog.permissionsOf(role))),
    ...key.permissions.filter((granted) => allows([granted])),
  ];
}

/** Whether a key may do something, and why. */
export interface AccessDecision {
  allowed: boolean;
  /** The key's own grants that say so. */
  grantedBy: Grant[];
  /** The status of the key, which counts its ancestors. */
  status: Status;
  /** The nearest ancestor that forbids it; null if none does. */
  deniedBy: ApiKey | null;
}

/** Decides on a permission by the whole chain of a key. @param now milliseconds since 1970 */
export function decideAccess(chain: Chain, permission: Permission, catalog: Catalog, now: number): AccessDecision {
  const status = chainStatus(chain, now);
  const limits = limitsOf(chain, catalog, now);
  const denying = limits.find((limit) => limit.status !== 'ACTIVE' || limit.permissions.includes(permission));
  return {
    allowed: status === 'ACTIVE' && chainAccess(chain, catalog).has(...splitPermission(permission)),
    grantedBy: grantsBehind(chain.keys[0], permission, catalog),
    status,
    deniedBy: denying?.ancestor ?? null,
  };
}

/** A grant in prose: `role ADMIN` or `permission DOCKER:READ_ANY`. */
export function describeGrant(grant: Grant): string {
  return grant.includes(':') ? `permission ${grant}` : `role ${grant}`;
}

export interface Suggestion {
  /** The roles that it has granted to other keys, without those that another of them includes. */
  roles: Role[];
  /** The smallest set of permissions that, with those roles, allows everything that the key has used. */
  permissions: Permission[];
  unused: Permission[];
  /** The tools of MCP servers that it has called, by their names. */
  tools: UsedTool[];
  /** The routes that have let its requests pass, as `describePattern` has them. */
  routes: string[];
}

/** Compares what a key holds with what it has used. What it has used but no longer holds is ignored. */
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
    tools: tools.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
    routes: routes.toSorted(),
  };
}

/** What a key has used, by its kinds. @param used with the times of the last use */
export function splitUsed(used: ReadonlyMap<UsedGrant, number>) {
  const [roles, permissions, tools, routes]: [Role[], Permission[], UsedTool[], string[]] = [[], [], [], []];
  for (const [grant, lastUsedAt] of used)
    if (grant.startsWith(ROLE)) roles.push(grant.slice(ROLE.length));
    else if (grant.startsWith(TOOL)) tools.push({ name: grant.slice(TOOL.length), lastUsedAt });
    else if (grant.startsWith(ROUTE)) routes.push(grant.slice(ROUTE.length));
    else permissions.push(grant as Permission);
  return { roles, permissions, tools, routes };
}

const ROLE = 'role:';
