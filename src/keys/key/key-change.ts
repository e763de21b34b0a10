import {
  anyText,
  debug,
  type Issue,
  list,
  orNull,
  required,
  type Rules,
  textOrDate,
  yesOrNo,
} from '../basics/index.ts';
import { type Catalog, parsePermissions, parseRoles, type Permission, type Role } from '../permissions/index.ts';
import { type GivenFields, NOTHING_GIVEN, RESTRICTION_FIELDS } from './api-key.ts';
import { type ExpiryRequest, validateExpiry } from './expiry.ts';
import {
  type FieldInput,
  keyFields,
  labelFields,
  mapFields,
  readFields,
  restrictionFields,
  validateFields,
} from './fields.ts';
import { normalizeName, validateName } from './name.ts';

/**
 * Changes to a key; omitted fields stay as they are. Texts are as the user wrote them. An `expiresAt` of null removes
 * the expiry.
 */
export interface KeyChange extends ExpiryRequest, FieldInput {
  /** 1 to 100 letters, digits and spaces. */
  name?: string;
  /** Names of all roles that the key is to have, case-insensitive. */
  roles?: readonly string[];
  /** All permissions that the key is to have besides its roles, as `RESOURCE:ACTION`, case-insensitive. */
  permissions?: readonly string[];
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
  ...mapFields(labelFields, ({ rule }) => rule),
  roles: list(anyText),
  permissions: list(anyText),
  ...mapFields(restrictionFields, ({ rule }) => rule),
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
  const { name, roles = [], permissions = [] } = change;
  const issues = [
    ...about('name', name === undefined ? [] : [validateName(name)]),
    ...validateFields(labelFields, change),
    ...about('roles', parseRoles(roles, catalog).issues),
    ...about('permissions', parsePermissions(permissions, catalog).issues),
    ...validateFields(restrictionFields, change),
    ...about(change.expiresIn === undefined ? 'expiresAt' : 'expiresIn', validateExpiry(change, now)),
  ];
  // No other field: an imported key has its secret beside them.
  debug('the fields of a key were validated', () => {
    const { name: keyName, roles, permissions, expiresIn, expiresAt } = change;
    const restrictions = Object.fromEntries(RESTRICTION_FIELDS.map((field) => [field, change[field]]));
    const given = { keyName, roles, permissions, ...restrictions, expiresIn, expiresAt };
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
  const { name, roles, permissions } = given;
  return {
    ...(name !== undefined && { name: normalizeName(name) }),
    ...readFields(keyFields, given),
    ...(roles && { roles: parseRoles(roles, catalog).values }),
    ...(permissions && { permissions: parsePermissions(permissions, catalog).values }),
  };
}

export function readNewFields(given: NewKey, catalog: Catalog): Omit<GivenFields, 'expiresAt'> {
  return { ...NOTHING_GIVEN, ...readGiven(given, catalog), name: normalizeName(given.name) };
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
