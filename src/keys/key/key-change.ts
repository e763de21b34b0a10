import { anyText, debug, type Issue, orNull, required, type Rules, textOrDate, yesOrNo } from '../basics/index.ts';
import type { Catalog } from '../permissions/index.ts';
import { type GivenFields, NOTHING_GIVEN, RESTRICTION_FIELDS } from './api-key.ts';
import { type ExpiryRequest, validateExpiry } from './expiry.ts';
import { type FieldInput, givenFields, mapFields, readFields, validateFields } from './fields.ts';

/**
 * Changes to a key; omitted fields stay as they are. Texts are as the user wrote them. An `expiresAt` of null removes
 * the expiry.
 */
export interface KeyChange extends ExpiryRequest, FieldInput {
  /** 1 to 100 letters, digits and spaces. */
  name?: string;
  /** All roles that the key should have, case-insensitive. */
  roles?: readonly string[];
  /** All permissions that the key should have besides its roles, as `RESOURCE:ACTION`, case-insensitive. */
  permissions?: readonly string[];
}

/** A request to create a key, with at least one role or permission. Omitted fields are empty. */
export interface NewKey extends KeyChange {
  name: string;
  /** Replace the key of that name, if there is one. */
  overwrite?: boolean;
}

/** The fields of a change. `validateChange` checks their values. */
export const KEY_CHANGE_OPTIONS: Rules<KeyChange> = {
  ...mapFields(givenFields, ({ rule }) => rule),
  expiresIn: anyText,
  expiresAt: orNull(textOrDate),
};
export const NEW_KEY_OPTIONS: Rules<NewKey> = { ...KEY_CHANGE_OPTIONS, name: required(anyText), overwrite: yesOrNo };

/** All issues with a new key, except a missing name: the caller can still prompt for it. */
export function validateNewKey(input: Partial<NewKey>, catalog: Catalog, now: number): Issue[] {
  return [...validateChange(input, catalog, now), ...validateGrants(input.roles ?? [], input.permissions ?? [])];
}

/** All issues with the given values. */
export function validateChange(change: KeyChange, catalog: Catalog, now: number): Issue[] {
  const ends = validateExpiry(change, now);
  const issues = [
    ...validateFields(givenFields, change, catalog),
    ...ends.map((issue) => ({ ...issue, field: change.expiresIn === undefined ? 'expiresAt' : 'expiresIn' })),
  ];
  // Logs these fields only: an imported key has its secret beside them.
  debug('the fields of a key were validated', () => {
    const { name: keyName, roles, permissions, expiresIn, expiresAt } = change;
    const restrictions = Object.fromEntries(RESTRICTION_FIELDS.map((field) => [field, change[field]]));
    const given = { keyName, roles, permissions, ...restrictions, expiresIn, expiresAt };
    return { ...given, issues: issues.map(({ code, field }) => ({ code, field })) };
  });
  return issues;
}

/** Requires at least one role or permission. Invalid items count, since they are issues already. */
export function validateGrants(roles: readonly unknown[], permissions: readonly unknown[]): Issue[] {
  if (roles.length > 0 || permissions.length > 0) return [];
  return [{ code: 'NO_GRANTS', message: 'An API key needs at least one role or permission.' }];
}

/** The stored values of a new key's validated fields, without its expiry. */
export function readNewFields(given: NewKey, catalog: Catalog): Omit<GivenFields, 'expiresAt'> {
  return { ...NOTHING_GIVEN, ...readFields(givenFields, given, catalog) };
}
