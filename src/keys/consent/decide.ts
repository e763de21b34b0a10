import { type Actor, OPERATOR, requirePermission } from '../authorization/principal.ts';
import { buildKey, planCreation } from '../changes/create.ts';
import type { Transaction } from '../changes/transaction.ts';
import type { Secret } from '../secret/secret.ts';
import { formatTime } from '../time.ts';
import {
  CODE_MS,
  CONSENTS,
  type ConsentRequest,
  decided,
  refuseOver,
  requestEntry,
} from '../requests/consent-request.ts';
import { formatScope } from '../requests/scope.ts';
import { approvalOf, type ConsentChoice, isSameApproval, keyOf } from './approval.ts';
import { shortScope, unknownRequest } from './ask.ts';

/** A request, if it waits for a decision. @throws KeysError NOT_FOUND, REQUEST_DECIDED */
export function requirePending(found: ConsentRequest | undefined, now: number): ConsentRequest {
  const request = requireOpen(found, now);
  if (request.status === 'PENDING') return request;
  throw decided(request, 'approved');
}

/** A request, if it waits for a decision, or for its application. @throws KeysError NOT_FOUND, REQUEST_DECIDED */
function requireOpen(found: ConsentRequest | undefined, now: number): ConsentRequest {
  const request = requireKnown(found, now);
  refuseOver(request);
  return request;
}

/** A request that has not ended, whatever became of it. @throws KeysError NOT_FOUND */
export function requireKnown(request: ConsentRequest | undefined, now: number): ConsentRequest {
  if (request && now < request.expiresAt) return request;
  throw unknownRequest();
}

/**
 * Agrees to a request, by the rules for creating a key: whoever agrees must hold what they grant, now and when the key
 * is created. Whoever agrees to the same again, before the application has fetched its key, changes nothing; a redirect
 * takes a new code along then, in place of the first.
 * @param made what the key would have if it were created now, and the digest of the code that a redirect takes along
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
  const request = requireOpen(await consents.find('id', id), now);
  const agreed = approvalOf(request, choice, { caller, catalog, now, ...made });
  if (request.approval && !isSameApproval(request.approval, agreed)) throw decided(request, 'approved');
  const approval = request.approval ?? agreed;
  const input = keyOf(request, approval);
  await planCreation(transaction, input, buildKey(input, { catalog, now, ...made }));
  if (request.approval && request.flow === 'DEVICE') return request;
  const redirected = {
    codeDigest: made.codeDigest,
    // A second code lasts no longer than the first: the request ends with that.
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
    name: approval.keyName,
    expiresAt: formatTime(approval.keyExpiresAt),
  };
  transaction.note(requestEntry('CONSENT_APPROVE', request, { values }));
  return approved;
}

/**
 * Refuses a request: one that is open, also after it was approved. One that was refused stays so.
 * @param isKnown whether it is known who refuses: what somebody else does is noted only as often as what they ask for
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
  requireOpen(request, now);
  const denied: ConsentRequest = { ...request, status: 'DENIED' };
  await consents.update(denied);
  if (isKnown || request.isNoted || request.approval)
    transaction.note(
      requestEntry('CONSENT_DENY', request, { values: { asked: shortScope(request), from: request.address } }),
    );
  return denied;
}

/** Refuses an actor that may not see all requests. @throws ForbiddenError */
export function requireToSeeRequests(actor: Actor): void {
  if (actor !== OPERATOR) requirePermission(actor, 'API_KEY', 'CREATE_ANY');
}
