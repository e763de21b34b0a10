import type { GivenFields, KeyChange, NewKey } from './api-key.ts';
import type { Catalog, Permission, Role } from '../permissions/catalog.ts';
import { normalizeDescription, validateDescription } from './description.ts';
import type { Issue } from '../errors.ts';
import { validateExpiry } from './expiry.ts';
import { NO_LIMITS, parseLimits } from '../limit.ts';
import { parsePermissions, parseRoles } from '../permissions/grants.ts';
import { readAllowFrom, validateNetworks } from './allow-from.ts';
import { normalizeName, validateName } from './name.ts';
import { anyText, list, orNull, required, type Rules, yesOrNo } from '../options.ts';
import { debug } from '../steps.ts';

/** The fields of a change. What their values may be is said by `validateChange`. */
export const KEY_CHANGE_OPTIONS: Rules<KeyChange> = {
  name: anyText,
  description: orNull(anyText),
  roles: list(anyText),
  permissions: list(anyText),
  limits: list(anyText),
  allowFrom: orNull(list(anyText)),
  expiresIn: anyText,
  expiresAt: orNull(anyText),
};
/** The same of a new key. */
export const NEW_KEY_OPTIONS: Rules<NewKey> = { ...KEY_CHANGE_OPTIONS, name: required(anyText), overwrite: yesOrNo };

/** All issues with a new key, but for a missing name: the caller may still prompt for it. */
export function validateNewKey(input: Partial<NewKey>, catalog: Catalog, now: number): Issue[] {
  return [...validateChange(input, catalog, now), ...validateGrants(input.roles ?? [], input.permissions ?? [])];
}

/** All issues with the given values. */
export function validateChange(change: KeyChange, catalog: Catalog, now: number): Issue[] {
  const { name, description, roles = [], permissions = [], limits = [], allowFrom = null } = change;
  const issues = [
    ...about('name', name === undefined ? [] : [validateName(name)]),
    ...about(
      'description',
      description === undefined || description === null ? [] : [validateDescription(description)],
    ),
    ...about('roles', parseRoles(roles, catalog).issues),
    ...about('permissions', parsePermissions(permissions, catalog).issues),
    ...about('limits', parseLimits(limits).issues),
    ...about('allowFrom', allowFrom === null ? [] : validateNetworks(allowFrom)),
    ...about(change.expiresIn === undefined ? 'expiresAt' : 'expiresIn', validateExpiry(change, now)),
  ];
  // No other field: an imported key has its secret beside them.
  debug('the fields of a key were validated', () => {
    const { name: keyName, roles, permissions, limits, allowFrom, expiresIn, expiresAt } = change;
    const given = { keyName, roles, permissions, limits, allowFrom, expiresIn, expiresAt };
    return { ...given, issues: issues.map(({ code, field }) => ({ code, field })) };
  });
  return issues;
}

function about(field: string, issues: readonly (Issue | undefined)[]): Issue[] {
  return issues.flatMap((issue) => (issue ? { ...issue, field } : []));
}

/** Requires at least one role or permission. Invalid items count: they are issues of their own. */
export function validateGrants(roles: readonly unknown[], permissions: readonly unknown[]): Issue[] {
  if (roles.length > 0 || permissions.length > 0) return [];
  return [{ code: 'NO_GRANTS', message: 'An API key needs at least one role or permission.' }];
}

/** What validated input gives a key but for its end, as it is kept. */
export function readGiven(given: KeyChange, catalog: Catalog): Partial<Omit<GivenFields, 'expiresAt'>> {
  const { name, description, roles, permissions, limits, allowFrom } = given;
  return {
    ...(name !== undefined && { name: normalizeName(name) }),
    ...(description !== undefined && { description: normalizeDescription(description) }),
    ...(roles && { roles: parseRoles(roles, catalog).values }),
    ...(permissions && { permissions: parsePermissions(permissions, catalog).values }),
    ...(limits && { limits: parseLimits(limits).values }),
    ...(allowFrom !== undefined && { allowFrom: readAllowFrom(allowFrom) }),
  };
}

/** The same of a new key, which has no more. */
export function readNewFields(given: NewKey, catalog: Catalog): Omit<GivenFields, 'expiresAt'> {
  const none = { description: null, roles: [], permissions: [], limits: NO_LIMITS, allowFrom: null };
  return { ...none, ...readGiven(given, catalog), name: normalizeName(given.name) };
}

/** The roles and permissions in validated input. */
export function readGrants(
  input: Pick<NewKey, 'roles' | 'permissions'>,
  catalog: Catalog,
): { roles: Role[]; permissions: Permission[] } {
  return {
    roles: parseRoles(input.roles ?? [], catalog).values,
    permissions: parsePermissions(input.permissions ?? [], catalog).values,
  };
}
