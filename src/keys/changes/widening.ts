import {
  addedGrants,
  appliedLimits,
  type Chain,
  chainHolds,
  chainHoldsUnknown,
  endsLater,
  isLoosened,
} from '../authorization/index.ts';
import { isBudget, type Limit, parseLimits, splitLimit } from '../basics/index.ts';
import { type ApiKey, areWithin, type GivenFields } from '../key/index.ts';
import { type Catalog, type Permission, PermissionSet, type Role, splitPermission } from '../permissions/index.ts';

type Grants = Pick<ApiKey, 'roles' | 'permissions'>;

/** The fields of a key before it was widened, as far as they were widened. */
type NarrowerFields = Partial<Omit<GivenFields, 'name' | 'description'>>;

export interface Widening {
  readonly before: NarrowerFields;
  /** The grants that it got. */
  readonly added: Grants;
}

/** Widening by a change; undefined if the key gets no more. */
export function findWidening(before: ApiKey, after: ApiKey, catalog: Catalog): Widening | undefined {
  const grants = addedGrants(before, after, catalog);
  const isGranted = grants.roles.length + grants.permissions.length > 0;
  const fields: NarrowerFields = {
    ...(isGranted && { roles: before.roles, permissions: before.permissions }),
    ...(endsLater(before, after) && { expiresAt: before.expiresAt }),
    ...(isLoosened(before, { ...before, limits: after.limits }, catalog) && { limits: before.limits }),
    ...(isLoosened(before, { ...before, allowFrom: after.allowFrom }, catalog) && { allowFrom: before.allowFrom }),
  };
  if (Object.keys(fields).length === 0) return undefined;
  const unknown = after.permissions.filter((grant) => !catalog.knows(grant) && !before.permissions.includes(grant));
  const permissions = PermissionSet.of(catalog, after).missingFrom(PermissionSet.of(catalog, before));
  const added = isGranted ? { roles: grants.roles, permissions: [...permissions, ...unknown] } : EMPTY;
  return { before: fields, added };
}

const EMPTY: Grants = { roles: [], permissions: [] };

export function isStillWidened({ before, added }: Widening, key: ApiKey, catalog: Catalog): boolean {
  const has = (permission: Permission) => {
    if (!catalog.knows(permission)) return key.permissions.includes(permission);
    return PermissionSet.of(catalog, key).has(...splitPermission(permission));
  };
  const hasGrants = added.roles.some((role) => key.roles.includes(role)) || added.permissions.some(has);
  const { expiresAt, limits, allowFrom } = before;
  return (
    (before.roles !== undefined && hasGrants) ||
    (expiresAt !== undefined && endsLater({ ...key, expiresAt }, key)) ||
    (limits !== undefined && isLoosened({ ...key, limits }, key, catalog)) ||
    (allowFrom !== undefined && isLoosened({ ...key, allowFrom }, key, catalog))
  );
}

/**
 * Takes a widening back: each widened field keeps what the key had before as well as now. A field with nothing left
 * stays as it is.
 * @returns the key, and whether a field has nothing left, so that the key must be disabled
 */
export function withoutWidening<Key extends ApiKey>(
  key: Key,
  widening: Widening,
  catalog: Catalog,
): { key: Key; leavesNothing: boolean } {
  if (!isStillWidened(widening, key, catalog)) return { key, leavesNothing: false };
  const { roles, permissions, expiresAt, limits, allowFrom } = widening.before;
  let narrowed = key;
  let leavesNothing = false;
  if (roles && permissions) {
    const grants = commonGrants(key, { roles, permissions }, catalog);
    if (grants.roles.length + grants.permissions.length > 0) narrowed = { ...narrowed, ...grants };
    else leavesNothing = true;
  }
  if (expiresAt !== undefined && endsLater({ ...key, expiresAt }, key)) narrowed = { ...narrowed, expiresAt };
  if (limits) narrowed = { ...narrowed, limits: closestLimits(key.limits, limits, catalog) };
  if (allowFrom) {
    const networks = key.allowFrom ? commonNetworks(key.allowFrom, allowFrom) : allowFrom;
    if (networks.length > 0) narrowed = { ...narrowed, allowFrom: networks };
    else leavesNothing = true;
  }
  return { key: narrowed, leavesNothing };
}

/** Grants that both keys have, as a short list. */
function commonGrants(now: Grants, before: Grants, catalog: Catalog): Grants {
  const holds = (holder: Grants, role: Role) => chainHolds(asChain(holder), role, catalog);
  const roles = [
    ...now.roles.filter((role) => holds(before, role)),
    ...before.roles.filter((role) => holds(now, role) && !now.roles.includes(role)),
  ];
  const common = PermissionSet.of(catalog, now).intersection(PermissionSet.of(catalog, before));
  const isCommon = (grant: Permission) =>
    catalog.knows(grant)
      ? new PermissionSet([grant]).missingFrom(common).length === 0
      : [now, before].every((each) => chainHoldsUnknown(asChain(each), grant));
  const permissions = [...new Set([...now.permissions, ...before.permissions])].filter(isCommon);
  const rest = common.missingFrom(PermissionSet.of(catalog, { roles, permissions }));
  return { roles, permissions: [...permissions, ...shortest(rest)] };
}

/** Leaves out permissions that others include. */
function shortest(permissions: readonly Permission[]): Permission[] {
  const isIncluded = (one: Permission) =>
    permissions.some(
      (other) => other !== one && new PermissionSet([one]).missingFrom(new PermissionSet([other])).length === 0,
    );
  return permissions.filter((one) => !isIncluded(one));
}

function asChain(grants: Grants): Chain {
  return { keys: [grants as ApiKey], isComplete: true };
}

/** Lower limit of each unit. The default limits apply to a key without its own. */
function closestLimits(
  now: readonly Limit[],
  before: readonly Limit[],
  { defaultLimits }: Pick<Catalog, 'defaultLimits'>,
): readonly Limit[] {
  const lowest = new Map<string, Limit>();
  for (const limits of [now, before])
    for (const limit of appliedLimits(limits, defaultLimits)) {
      const { unit, count } = splitLimit(limit);
      const known = lowest.get(unit);
      if (!known || count < splitLimit(known).count) lowest.set(unit, limit);
    }
  const closest = parseLimits([...lowest.values()]).values;
  const budgets = closest.filter(isBudget);
  const isDefault =
    before.every(isBudget) && closest.join() === [...parseLimits(defaultLimits).values, ...budgets].join();
  return isDefault ? budgets : closest;
}

/** Intersection of two lists of networks: of two networks that overlap, one contains the other. */
function commonNetworks(some: readonly string[], others: readonly string[]): string[] {
  const within = (inner: readonly string[], outer: readonly string[]) => inner.filter((one) => areWithin([one], outer));
  return [...new Set([...within(some, others), ...within(others, some)])];
}
