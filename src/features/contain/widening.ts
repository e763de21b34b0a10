import { addedGrants, type Chain, chainHolds, chainHoldsUnknown, endsLater } from '../../keys/authorization/index.ts';
import { type ApiKey, RESTRICTIONS, type ValuesOf, type wideningFields } from '../../keys/key/index.ts';
import {
  type Catalog,
  type Permission,
  PermissionSet,
  type Role,
  splitPermission,
} from '../../keys/permissions/index.ts';

type Grants = Pick<ApiKey, 'roles' | 'permissions'>;

/** The fields of a key before it was widened, as far as they were widened. */
type NarrowerFields = Partial<Grants & Pick<ApiKey, 'expiresAt'> & Restricted>;
type Restricted = ValuesOf<typeof wideningFields>;

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
    ...loosenedFields(before, after, catalog),
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
  const { expiresAt } = before;
  return (
    (before.roles !== undefined && hasGrants) ||
    (expiresAt !== undefined && endsLater({ ...key, expiresAt }, key)) ||
    Object.keys(loosenedFields(before, key, catalog)).length > 0
  );
}

/** The values of restrictions that a key had before and that allow more now. */
function loosenedFields(before: Partial<Restricted>, after: Restricted, catalog: Catalog): Partial<Restricted> {
  const loosened = RESTRICTIONS.filter(
    ([name, { closer }]) => before[name] !== undefined && closer([before[name]], [after[name]], catalog) !== undefined,
  );
  return Object.fromEntries(loosened.map(([name]) => [name, before[name]]));
}

/**
 * Undoes a widening: each widened field keeps only values that the key had both before and now. A field that would
 * become empty stays unchanged.
 * @returns the key, and whether a field would be empty, so that the key must be disabled
 */
export function withoutWidening<Key extends ApiKey>(
  key: Key,
  widening: Widening,
  catalog: Catalog,
): { key: Key; leavesNothing: boolean } {
  if (!isStillWidened(widening, key, catalog)) return { key, leavesNothing: false };
  const { roles, permissions, expiresAt, ...restricted } = widening.before;
  let narrowed = key;
  let leavesNothing = false;
  if (roles && permissions) {
    const grants = commonGrants(key, { roles, permissions }, catalog);
    if (grants.roles.length + grants.permissions.length > 0) narrowed = { ...narrowed, ...grants };
    else leavesNothing = true;
  }
  if (expiresAt !== undefined && endsLater({ ...key, expiresAt }, key)) narrowed = { ...narrowed, expiresAt };
  for (const [name, restriction] of RESTRICTIONS) {
    if (restricted[name] === undefined) continue;
    const common = restriction.common(key[name], restricted[name], catalog);
    if (common === undefined) leavesNothing = true;
    else narrowed = { ...narrowed, [name]: common };
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
