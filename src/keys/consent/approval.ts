import { type Actor, OPERATOR } from '../authorization/principal.ts';
import { assertValid, type Issue, KeysError } from '../errors.ts';
import type { NewKey } from '../key/api-key.ts';
import { expiryIn, type ExpiryRequest, expiryOf, validateExpiry } from '../key/expiry.ts';
import { readGrants, validateGrants } from '../key/validation.ts';
import { type Catalog, unknownGrantsOf } from '../permissions/catalog.ts';
import { anyText, list, orNull, type Rules } from '../options.ts';
import { parsePermissions, parseRoles } from '../permissions/grants.ts';
import { PermissionSet } from '../permissions/permission-set.ts';
import { formatList } from '../text.ts';
import { formatTime } from '../time.ts';
import type { Approver, ConsentApproval, ConsentRequest, Grants } from '../requests/consent-request.ts';
import { scopeItems } from '../requests/scope.ts';

/** What a person agrees to. Without grants, to all that was asked for; without an expiry, to the one that was. */
export interface ConsentChoice extends ExpiryRequest {
  /** Names of roles, case-insensitive. */
  roles?: readonly string[];
  /** Permissions as `RESOURCE:ACTION`, case-insensitive. */
  permissions?: readonly string[];
}

/** The fields of a choice. One that is left out is as it was asked for. */
export const CHOICE_OPTIONS: Rules<ConsentChoice> = {
  roles: list(anyText),
  permissions: list(anyText),
  expiresIn: anyText,
  expiresAt: orNull(anyText),
};

/**
 * What somebody agrees to, as it is kept.
 * @param suffix what tells the name of the key from those of others
 * @throws ValidationError; KeysError INPUT_INVALID for more than was asked for
 */
export function approvalOf(
  request: ConsentRequest,
  choice: ConsentChoice,
  {
    caller,
    catalog,
    now,
    operator,
    suffix,
  }: {
    caller: Actor;
    catalog: Catalog;
    now: number;
    operator: string;
    suffix: string;
  },
): ConsentApproval {
  const grants = narrowed(request, choice, catalog);
  const hasEnd = choice.expiresIn !== undefined || choice.expiresAt !== undefined;
  const expiry = hasEnd || request.keyExpiresIn === null ? choice : expiryIn(request.keyExpiresIn);
  assertValid(validateExpiry(expiry, now));
  const keyExpiresAt = expiryOf(expiry, now) ?? null;
  return {
    ...grants,
    by: approverOf(caller, operator),
    at: now,
    keyName: `${request.client.name} ${formatTime(now).slice(0, 10).replaceAll('-', '')} ${suffix}`,
    keyExpiresAt,
    keyEnd: expiry.expiresIn ?? formatTime(keyExpiresAt),
  };
}

/** Whether the same was granted, for as long, by the same key with the same secret, or the same user of a terminal. */
export function isSameApproval(one: ConsentApproval, other: ConsentApproval): boolean {
  const isSameSecret = one.by.publicId === other.by.publicId;
  const isSameUser = one.by.publicId !== null || one.by.name === other.by.name;
  const [granted, others] = [one, other].map((each) => scopeItems(each).toSorted().join(' '));
  return isSameSecret && isSameUser && granted === others && one.keyEnd === other.keyEnd;
}

/** The key that an approval makes, as it is asked for. */
export function keyOf({ client, address }: ConsentRequest, approval: ConsentApproval): NewKey {
  const { keyName, roles, permissions, keyExpiresAt } = approval;
  return {
    name: keyName,
    description: `Asked for by the application ${client.id}${address === null ? '' : ` from ${address}`}`,
    roles,
    permissions,
    ...(keyExpiresAt !== null && { expiresAt: formatTime(keyExpiresAt) }),
  };
}

function approverOf(caller: Actor, operator: string): Approver {
  if (caller === OPERATOR) return { id: null, publicId: null, name: operator };
  const { id, publicId, name } = caller.apiKey;
  return { id, publicId, name };
}

/** What is wrong with grants that somebody has chosen. */
export function validateChosen(
  { roles = [], permissions = [] }: Pick<ConsentChoice, 'roles' | 'permissions'>,
  catalog: Catalog,
): Issue[] {
  return [
    ...parseRoles(roles, catalog).issues,
    ...parsePermissions(permissions, catalog).issues,
    ...validateGrants(roles, permissions),
  ];
}

/** What is granted of what was asked for. @throws ValidationError; KeysError INPUT_INVALID for more */
function narrowed(request: ConsentRequest, { roles, permissions }: ConsentChoice, catalog: Catalog): Grants {
  const chosen = (roles ?? permissions) ? { roles: roles ?? [], permissions: permissions ?? [] } : undefined;
  if (!chosen) return requireGrantable({ roles: request.roles, permissions: request.permissions }, catalog);
  assertValid(validateChosen(chosen, catalog));
  const grants = readGrants(chosen, catalog);
  const foreign = grants.roles.filter((role) => !request.roles.some((asked) => catalog.includes(asked, role)));
  const more = PermissionSet.of(catalog, { roles: [], permissions: grants.permissions }).missingFrom(
    PermissionSet.of(catalog, request),
  );
  if (foreign.length + more.length === 0) return grants;
  const what = formatList([...foreign.map((role) => `the role ${role}`), ...more].slice(0, 5));
  throw new KeysError('INPUT_INVALID', `The application did not ask for ${what}. Grant no more than that.`);
}

/** The catalog may have changed since the request was made. @throws KeysError INPUT_INVALID */
function requireGrantable(grants: Grants, catalog: Catalog): Grants {
  const unknown = unknownGrantsOf(grants, catalog);
  if (unknown.length === 0) return grants;
  throw new KeysError('INPUT_INVALID', `${formatList(unknown)} can be granted no longer. Grant something else.`);
}
