import type { Principal } from '../keys/authorization/index.ts';
import { type Action, type Permission, splitPermission } from '../keys/permissions/index.ts';
import type { RequiredPermissions } from './bearer-options.ts';

/** The required permissions: all of these, or one of them if that is enough. */
export interface Requirement {
  readonly items: readonly (readonly [permission: Permission, resource: string, action: Action])[];
  readonly isEnough: boolean;
}

/** The requirement in checked options; undefined if any valid key is accepted. */
export function requirementOf({ permission, all, any }: RequiredPermissions): Requirement | undefined {
  const permissions = permission === undefined ? (all ?? any) : [permission];
  if (!permissions) return undefined;
  return { items: permissions.map((each) => [each, ...splitPermission(each)]), isEnough: any !== undefined };
}

/** The permissions that a principal lacks; undefined if it lacks none, and then they count as used. */
export function missingFrom(principal: Principal, { items, isEnough }: Requirement): Permission[] | undefined {
  const { access, observer } = principal;
  const held = items.filter(([, resource, action]) => access.has(resource, action));
  if (isEnough ? held.length === 0 : held.length < items.length)
    return items.filter((item) => !held.includes(item)).map(([permission]) => permission);
  for (const [permission] of isEnough ? held.slice(0, 1) : held) observer?.used(permission);
  return undefined;
}
