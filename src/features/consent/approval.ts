import { type Actor, OPERATOR, requirePermission } from '../../keys/authorization/index.ts';
import { assertValid, formatTime, type Issue, KeysError, formatList } from '../../keys/basics/index.ts';
import { buildKey, type Place, planCreation, type Transaction } from '../../keys/changes/index.ts';
import {
  expiryIn,
  expiryOf,
  type ExpiryRequest,
  type NewKey,
  validateExpiry,
  validateGrants,
} from '../../keys/key/index.ts';
import {
  formatScope,
  scopeItems,
  type Catalog,
  parsePermissions,
  parseRoles,
  PermissionSet,
  unknownGrantsOf,
} from '../../keys/permissions/index.ts';
import {
  type Approver,
  CODE_MS,
  type ConsentApproval,
  type ConsentRequest,
  CONSENTS,
  decided,
  refuseOver,
  requestEntry,
} from './consent-request.ts';
import type { Grants } from '../../keys/repository/index.ts';
import type { Secret } from '../../keys/secret/index.ts';
import { shortScope } from './ask.ts';
import { isSelfRegistered } from './clients.ts';

/** The choice of a person who approves. Without grants, everything requested; without an expiry, the requested one. */
export interface ConsentChoice extends ExpiryRequest {
  /** Names of roles, case-insensitive. */
  roles?: readonly string[];
  /** Permissions as `RESOURCE:ACTION`, case-insensitive. */
  permissions?: readonly string[];
}

/** Builds the stored approval. @param suffix makes the name of the key unique */
function approvalOf(
  request: ConsentRequest,
  choice: ConsentChoice,
  {
    caller,
    catalog,
    now,
    operator,
    suffix,
  }: Pick<Place, 'caller' | 'catalog' | 'now'> & { operator: string; suffix: string },
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

/**
 * Checks whether two approvals are equal: same grants and expiry, by the same key and secret, or by the same user of a
 * terminal.
 */
function isSameApproval(one: ConsentApproval, other: ConsentApproval): boolean {
  const isSameSecret = one.by.publicId === other.by.publicId;
  const isSameUser = one.by.publicId !== null || one.by.name === other.by.name;
  const [granted, others] = [one, other].map((each) => scopeItems(each).toSorted().join(' '));
  return isSameSecret && isSameUser && granted === others && one.keyEnd === other.keyEnd;
}

export function keyOf({ client, address }: ConsentRequest, approval: ConsentApproval): NewKey {
  const { keyName, roles, permissions, keyExpiresAt } = approval;
  const application = isSelfRegistered(client) ? client.name : client.id;
  return {
    name: keyName,
    description: `Requested by the application ${application}${address === null ? '' : ` from ${address}`}`,
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

/** Finds problems of chosen grants. */
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

/** Limits the requested grants to the chosen ones. @throws ValidationError; KeysError INPUT_INVALID for more */
function narrowed(request: ConsentRequest, { roles, permissions }: ConsentChoice, catalog: Catalog): Grants {
  const chosen = (roles ?? permissions) ? { roles: roles ?? [], permissions: permissions ?? [] } : undefined;
  if (!chosen) return requireGrantable({ roles: request.roles, permissions: request.permissions }, catalog);
  assertValid(validateChosen(chosen, catalog));
  const grants = {
    roles: parseRoles(chosen.roles, catalog).values,
    permissions: parsePermissions(chosen.permissions, catalog).values,
  };
  const foreign = grants.roles.filter((role) => !request.roles.some((asked) => catalog.includes(asked, role)));
  const more = PermissionSet.of(catalog, { roles: [], permissions: grants.permissions }).missingFrom(
    PermissionSet.of(catalog, request),
  );
  if (foreign.length + more.length === 0) return grants;
  const what = formatList([...foreign.map((role) => `the role ${role}`), ...more].slice(0, 5));
  throw new KeysError('INPUT_INVALID', `The application did not request ${what}. Approve only what it requested.`);
}

/** Checks the grants again, because the catalog may have changed since the request. @throws KeysError INPUT_INVALID */
function requireGrantable(grants: Grants, catalog: Catalog): Grants {
  const unknown = unknownGrantsOf(grants, catalog);
  if (unknown.length === 0) return grants;
  throw new KeysError('INPUT_INVALID', `${formatList(unknown)} can no longer be granted. Choose other permissions.`);
}

/** A request that is known, if it waits for a decision. @throws KeysError REQUEST_DECIDED */
export function requirePending(request: ConsentRequest): ConsentRequest {
  refuseOver(request);
  if (request.status === 'PENDING') return request;
  throw decided(request, 'approved');
}

/** A request that has not ended, whatever became of it. @throws KeysError NOT_FOUND */
export function requireKnown(request: ConsentRequest | undefined, now: number): ConsentRequest {
  if (request && now < request.expiresAt) return request;
  throw new KeysError(
    'NOT_FOUND',
    'No application is waiting for this code. It may have expired: get a new one from the application.',
  );
}

/**
 * Approves a request by the rules for creating a key: the approver must hold the grants, both now and when the key is
 * created. Approving again the same way before the application has fetched its key changes nothing, except that a
 * redirect then carries a new code instead of the first.
 * @param made the approved key as it would be created now, and the digest of the code in the redirect
 * @throws ValidationError; KeysError NOT_FOUND, REQUEST_DECIDED; ForbiddenError
 */
export async function approveRequest(
  transaction: Transaction,
  id: string,
  choice: ConsentChoice,
  made: { operator: string; suffix: string; id: string; secret: Secret; codeDigest: string },
): Promise<ConsentRequest> {
  const { caller, catalog, now } = transaction;
  const consents = transaction.port(CONSENTS);
  const request = requireKnown(await consents.find('id', id), now);
  refuseOver(request);
  const agreed = approvalOf(request, choice, { caller, catalog, now, ...made });
  if (request.approval && !isSameApproval(request.approval, agreed)) throw decided(request, 'approved');
  const approval = request.approval ?? agreed;
  const input = keyOf(request, approval);
  await planCreation(transaction, input, buildKey(input, { catalog, now, ...made, audience: request.audience }));
  if (request.approval && request.flow === 'DEVICE') return request;
  const redirected = {
    codeDigest: made.codeDigest,
    // A second code must not last longer, because the request expires with the first.
    expiresAt: Math.min(request.expiresAt, now + CODE_MS),
  };
  const approved: ConsentRequest = {
    ...request,
    status: 'APPROVED',
    approval,
    ...(request.flow === 'CODE' && redirected),
  };
  await consents.update(approved);
  const values = {
    asked: formatScope(request),
    from: request.address,
    granted: formatScope(approval),
    ...(request.audience && { audience: request.audience }),
    name: approval.keyName,
    expiresAt: formatTime(approval.keyExpiresAt),
  };
  transaction.note(requestEntry('CONSENT_APPROVE', request, { values }));
  return approved;
}

/**
 * Denies an open request, even after it was approved. A denied one stays denied.
 * @param isKnown true if the person is identified: denials by others are logged only as often as their requests
 * @throws KeysError NOT_FOUND, REQUEST_DECIDED
 */
export async function denyRequest(
  transaction: Transaction,
  id: string,
  { isKnown }: { isKnown: boolean },
): Promise<ConsentRequest> {
  const { now } = transaction;
  const consents = transaction.port(CONSENTS);
  const request = requireKnown(await consents.find('id', id), now);
  if (request.status === 'DENIED') return request;
  refuseOver(request);
  const denied: ConsentRequest = { ...request, status: 'DENIED' };
  await consents.update(denied);
  if (isKnown || request.isNoted || request.approval)
    transaction.note(
      requestEntry('CONSENT_DENY', request, { values: { asked: shortScope(request), from: request.address } }),
    );
  return denied;
}

/** Requires an actor who is allowed to see all requests. @throws ForbiddenError */
export function requireToSeeRequests(actor: Actor): void {
  if (actor !== OPERATOR) requirePermission(actor, 'API_KEY', 'CREATE_ANY');
}
