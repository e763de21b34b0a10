import { type Actor, OPERATOR, requirePermission } from '../authorization/principal.ts';
import { buildKey, planCreation } from '../changes/create.ts';
import type { Transaction } from '../changes/transaction.ts';
import { assertValid, KeysError } from '../errors.ts';
import type { NewKey } from '../key/api-key.ts';
import { expiryIn, type ExpiryRequest, expiryOf, validateExpiry } from '../key/expiry.ts';
import { readGrants, validateGrants } from '../key/validation.ts';
import { type Catalog, unknownGrantsOf } from '../permissions/catalog.ts';
import { parsePermissions, parseRoles } from '../permissions/grants.ts';
import { PermissionSet } from '../permissions/permission-set.ts';
import type { Secret } from '../secret/secret.ts';
import { listOf } from '../text.ts';
import { formatTime } from '../time.ts';
import {
  type Approver,
  CODE_MS,
  type ConsentApproval,
  type ConsentRequest,
  type Grants,
  isOpen,
} from '../requests/consent-request.ts';
import { formatScope } from '../requests/scope.ts';
import { shortScope, unknownRequest } from './ask.ts';

/** What a person agrees to. Without grants, to all that was asked for; without an end, to the one that was. */
export interface ConsentChoice extends ExpiryRequest {
  /** Names of roles, case-insensitive. */
  roles?: readonly string[] | undefined;
  /** Permissions as `RESOURCE:ACTION`, case-insensitive. */
  permissions?: readonly string[] | undefined;
}

/** A request, if it waits for a decision. @throws KeysError NOT_FOUND, REQUEST_DECIDED */
export function requirePending(found: ConsentRequest | undefined, now: number): ConsentRequest {
  const request = requireOpen(found, now);
  if (request.status === 'PENDING') return request;
  throw decided(request, 'approved');
}

/** A request, if it waits for a decision, or for its application. @throws KeysError NOT_FOUND, REQUEST_DECIDED */
export function requireOpen(request: ConsentRequest | undefined, now: number): ConsentRequest {
  if (!request || now >= request.expiresAt) throw unknownRequest();
  if (isOpen(request, now)) return request;
  throw decided(request, request.status === 'DENIED' ? 'refused' : 'approved');
}

function decided({ client }: ConsentRequest, outcome: 'approved' | 'refused'): KeysError {
  return new KeysError('REQUEST_DECIDED', `The request of "${client.name}" was ${outcome} already.`);
}

/** The key that an approval makes, as it is asked for. */
export function keyOf({ client, address }: ConsentRequest, approval: Omit<ConsentApproval, 'by'>): NewKey {
  const { keyName, roles, permissions, keyExpiresAt } = approval;
  return {
    name: keyName,
    description: `Asked for by the application ${client.id}${address === null ? '' : ` from ${address}`}`,
    roles,
    permissions,
    ...(keyExpiresAt !== null && { expiresAt: formatTime(keyExpiresAt) }),
  };
}

/**
 * Agrees to a request, by the rules for creating a key: whoever agrees must hold what they grant, now and when the key
 * is created.
 * @param made what the key would have if it were created now, and the digest of the code that a redirect takes along
 * @throws ValidationError; KeysError NOT_FOUND, REQUEST_DECIDED; ForbiddenError
 */
export async function approveRequest(
  transaction: Transaction,
  id: string,
  choice: ConsentChoice,
  made: { operator: string; suffix: string; id: string; secret: Secret; codeDigest: string },
): Promise<ConsentRequest> {
  const { caller, catalog, now, consents, find } = transaction;
  const request = requirePending(await consents.find('id', id), now);
  const grants = narrowed(request, choice, catalog);
  const hasEnd = choice.expiresIn !== undefined || choice.expiresAt !== undefined;
  const expiry = hasEnd || request.keyExpiresIn === null ? choice : expiryIn(request.keyExpiresIn);
  assertValid(validateExpiry(expiry, now));
  const approval = {
    ...grants,
    keyName: `${request.client.name} ${formatTime(now).slice(0, 10).replaceAll('-', '')} ${made.suffix}`,
    keyExpiresAt: expiryOf(expiry, now) ?? null,
  };
  const input = keyOf(request, approval);
  await planCreation({ caller, find, catalog, now }, input, buildKey(input, { catalog, now, ...made }));
  const by = approverOf(caller, made.operator);
  const isRedirected = request.flow === 'CODE';
  const approved: ConsentRequest = {
    ...request,
    status: 'APPROVED',
    approval: { ...approval, by },
    ...(isRedirected && { codeDigest: made.codeDigest, expiresAt: Math.min(request.expiresAt, now + CODE_MS) }),
  };
  await consents.update(approved);
  const values = {
    asked: formatScope(request),
    from: request.address,
    granted: formatScope(grants),
    name: approval.keyName,
    expiresAt: formatTime(approval.keyExpiresAt),
  };
  transaction.noteConsent('CONSENT_APPROVE', request, { values });
  return approved;
}

/**
 * Refuses a request: one that is open, also after it was approved.
 * @param isKnown whether it is known who refuses: what somebody else does is noted only as often as what they ask for
 * @throws KeysError NOT_FOUND, REQUEST_DECIDED
 */
export async function denyRequest(
  transaction: Transaction,
  id: string,
  { isKnown }: { isKnown: boolean },
): Promise<ConsentRequest> {
  const { consents, now } = transaction;
  const request = requireOpen(await consents.find('id', id), now);
  const denied: ConsentRequest = { ...request, status: 'DENIED' };
  await consents.update(denied);
  if (isKnown || request.isNoted || request.approval)
    transaction.noteConsent('CONSENT_DENY', request, {
      values: { asked: shortScope(request), from: request.address },
    });
  return denied;
}

/** Refuses an actor that may not see all requests. @throws ForbiddenError */
export function requireToSeeRequests(actor: Actor): void {
  if (actor !== OPERATOR) requirePermission(actor, 'API_KEY', 'CREATE_ANY');
}

function approverOf(caller: Actor, operator: string): Approver {
  if (caller === OPERATOR) return { id: null, publicId: null, name: operator };
  const { id, publicId, name } = caller.key;
  return { id, publicId, name };
}

/** What is granted of what was asked for. @throws ValidationError; KeysError INPUT_INVALID for more */
function narrowed(request: ConsentRequest, { roles, permissions }: ConsentChoice, catalog: Catalog): Grants {
  const chosen = (roles ?? permissions) ? { roles: roles ?? [], permissions: permissions ?? [] } : undefined;
  if (!chosen) return requireKnown({ roles: request.roles, permissions: request.permissions }, catalog);
  assertValid([
    ...parseRoles(chosen.roles, catalog).issues,
    ...parsePermissions(chosen.permissions, catalog).issues,
    ...validateGrants(chosen.roles, chosen.permissions),
  ]);
  const grants = readGrants(chosen, catalog);
  const foreign = grants.roles.filter((role) => !request.roles.some((asked) => catalog.includes(asked, role)));
  const more = PermissionSet.of(catalog, { roles: [], permissions: grants.permissions }).missingFrom(
    PermissionSet.of(catalog, request),
  );
  if (foreign.length + more.length === 0) return grants;
  const what = listOf([...foreign.map((role) => `the role ${role}`), ...more].slice(0, 5));
  throw new KeysError('INPUT_INVALID', `The application did not ask for ${what}. Grant no more than that.`);
}

/** The catalog may have changed since the request was made. @throws KeysError INPUT_INVALID */
function requireKnown(grants: Grants, catalog: Catalog): Grants {
  const unknown = unknownGrantsOf(grants, catalog);
  if (unknown.length === 0) return grants;
  throw new KeysError('INPUT_INVALID', `${listOf(unknown)} can be granted no longer. Grant something else.`);
}
