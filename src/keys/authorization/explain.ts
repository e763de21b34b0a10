import { assertValid } from '../basics/index.ts';
import type { ApiKey, Status } from '../key/index.ts';
import {
  type Catalog,
  type Grant,
  parsePermissions,
  type Permission,
  PermissionSet,
  splitPermission,
} from '../permissions/index.ts';
import { type Chain, chainAccess, chainStatus, limitsOf } from './chain.ts';

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

/** True or false, and why. */
export interface AccessDecision {
  allowed: boolean;
  /** The key's own grants that allow it. */
  grantedBy: Grant[];
  /** The status of the key, which counts its ancestors. */
  status: Status;
  /** The nearest ancestor that does not allow it; null if all do. */
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

/** A grant in prose: `role ADMIN` or `permission WIKI:READ_ANY`. */
export function describeGrant(grant: Grant): string {
  return grant.includes(':') ? `permission ${grant}` : `role ${grant}`;
}
