import {
  anyText,
  debug,
  type Issue,
  list,
  orNull,
  parseLimits,
  required,
  type Rules,
  textOrDate,
  yesOrNo,
} from '../basics/index.ts';
import { type Catalog, parsePermissions, parseRoles, type Permission, type Role } from '../permissions/index.ts';
import { readAllowFrom, validateNetworks } from './allow-from.ts';
import { type GivenFields, NO_LABELS, UNRESTRICTED } from './api-key.ts';
import { type ExpiryRequest, validateExpiry } from './expiry.ts';
import { normalizeLine, parseTags, validateLine } from './labels.ts';
import { normalizeName, validateName } from './name.ts';

/**
 * Changes to a key; omitted fields stay as they are. Texts are as the user wrote them. An `expiresAt` of null removes
 * the expiry.
 */
export interface KeyChange extends ExpiryRequest {
  /** 1 to 100 letters, digits and spaces. */
  name?: string;
  /** At most 1,000 code points, without control characters; null for none. */
  description?: string | null;
  /** The owner, who answers for it: at most 200 code points, without control characters; null for nobody. */
  owner?: string | null;
  /** All its tags, at most 16, each as `key=value`, each key once. */
  tags?: readonly string[];
  /** Names of all roles that the key is to have, case-insensitive. */
  roles?: readonly string[];
  /** All permissions that the key is to have besides its roles, as `RESOURCE:ACTION`, case-insensitive. */
  permissions?: readonly string[];
  /** How many requests it may make, such as `100/m`; each unit (s, m, h, d, month) once. An empty list is no limits. */
  limits?: readonly string[];
  /** All networks that it may be used from, such as `10.0.0.0/8`, at least one; null for anywhere. */
  allowFrom?: readonly string[] | null;
}

/** A request to create a key, with at least one role or permission. Omitted fields are empty. */
export interface NewKey extends KeyChange {
  name: string;
  /** Replace the key of that name, if there is one. */
  overwrite?: boolean;
}

/** The fields of a change. What their values may be is said by `validateChange`. */
export const KEY_CHANGE_OPTIONS: Rules<KeyChange> = {
  name: anyText,
  description: orNull(anyText),
  owner: orNull(anyText),
  tags: list(anyText),
  roles: list(anyText),
  permissions: list(anyText),
  limits: list(anyText),
  allowFrom: orNull(list(anyText)),
  expiresIn: anyText,
  expiresAt: orNull(textOrDate),
};
export const NEW_KEY_OPTIONS: Rules<NewKey> = { ...KEY_CHANGE_OPTIONS, name: required(anyText), overwrite: yesOrNo };

/** All issues with a new key, but for a missing name: the caller may still prompt for it. */
export function validateNewKey(input: Partial<NewKey>, catalog: Catalog, now: number): Issue[] {
  return [...validateChange(input, catalog, now), ...validateGrants(input.roles ?? [], input.permissions ?? [])];
}

/** All issues with the given values. */
export function validateChange(change: KeyChange, catalog: Catalog, now: number): Issue[] {
  const { name, description, owner, tags = [], roles = [], permissions = [], limits = [], allowFrom = null } = change;
  const issues = [
    ...about('name', name === undefined ? [] : [validateName(name)]),
    ...about('description', description == null ? [] : [validateLine(description, 'description')]),
    ...about('owner', owner == null ? [] : [validateLine(owner, 'owner')]),
    ...about('tags', parseTags(tags).issues),
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

/** Reads the fields that validated input gives a key, but for its expiry, as they are kept. */
export function readGiven(given: KeyChange, catalog: Catalog): Partial<Omit<GivenFields, 'expiresAt'>> {
  const { name, description, owner, tags, roles, permissions, limits, allowFrom } = given;
  return {
    ...(name !== undefined && { name: normalizeName(name) }),
    ...(description !== undefined && { description: normalizeLine(description) }),
    ...(owner !== undefined && { owner: normalizeLine(owner) }),
    ...(tags && { tags: parseTags(tags).values }),
    ...(roles && { roles: parseRoles(roles, catalog).values }),
    ...(permissions && { permissions: parsePermissions(permissions, catalog).values }),
    ...(limits && { limits: parseLimits(limits).values }),
    ...(allowFrom !== undefined && { allowFrom: readAllowFrom(allowFrom) }),
  };
}

export function readNewFields(given: NewKey, catalog: Catalog): Omit<GivenFields, 'expiresAt'> {
  const none = { ...NO_LABELS, roles: [], permissions: [], ...UNRESTRICTED };
  return { ...none, ...readGiven(given, catalog), name: normalizeName(given.name) };
}

export function readGrants(
  input: Pick<NewKey, 'roles' | 'permissions'>,
  catalog: Catalog,
): { roles: Role[]; permissions: Permission[] } {
  return {
    roles: parseRoles(input.roles ?? [], catalog).values,
    permissions: parsePermissions(input.permissions ?? [], catalog).values,
  };
}
