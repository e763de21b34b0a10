import { assertValid, KeysError } from '../errors.ts';
import { expiryIn, validateExpiry } from '../key/expiry.ts';
import type { AuditActor } from '../audit/audit-entry.ts';
import { OPERATOR } from '../authorization/principal.ts';
import { Transaction, type TransactionOptions } from '../changes/transaction.ts';
import type { KeyWriter } from '../repository.ts';
import type { Client } from '../requests/clients.ts';
import { createCode, createUserCode, digestCode } from '../requests/codes.ts';
import {
  type ConsentRedirect,
  type ConsentRequest,
  type Grants,
  KEPT_MS,
  KEPT_USED_MS,
  MAX_NOTED_REQUESTS,
  MAX_REQUESTS,
  REQUEST_MS,
} from '../requests/consent-request.ts';
import { formatScope } from '../requests/scope.ts';
import type { RandomBytes } from '../secret/secret.ts';
import { TooManyRequestsError } from './pace.ts';

/** In characters. */
const MAX_NOTED_SCOPE = 300;

/** What an application asks for. */
export interface NewConsentRequest extends Grants {
  client: Client;
  /** After which time the key is to end, such as `30d`. */
  keyExpiresIn?: string | undefined;
  /** Where it comes from. */
  address?: string | undefined;
  /** Where the person is sent back to; without it, they type a code. */
  redirect?: ConsentRedirect | undefined;
}

/** A request that was just made: the only time its codes are known. */
export interface AskedConsent {
  request: ConsentRequest;
  /** What a person decides by: the user code, or what their page has. */
  handle: string;
  /** What the application gets its key by; undefined where that is sent with the person. */
  deviceCode: string | undefined;
}

/** Builds a request. @throws ValidationError for an end that cannot be read */
export function buildRequest(
  { client, roles, permissions, keyExpiresIn, address, redirect }: NewConsentRequest,
  { now, id, randomBytes }: { now: number; id: string; randomBytes: RandomBytes },
): AskedConsent {
  if (keyExpiresIn !== undefined) assertValid(validateExpiry(expiryIn(keyExpiresIn), now));
  const handle = redirect ? createCode(randomBytes) : createUserCode(randomBytes);
  const deviceCode = redirect ? undefined : createCode(randomBytes);
  const request: ConsentRequest = {
    id,
    flow: redirect ? 'CODE' : 'DEVICE',
    client: { id: client.id, name: client.name },
    roles,
    permissions,
    keyExpiresIn: keyExpiresIn ?? null,
    address: address ?? null,
    isNoted: false,
    createdAt: now,
    expiresAt: now + REQUEST_MS,
    status: 'PENDING',
    handleDigest: digestCode(redirect ? 'page' : 'user', handle),
    codeDigest: deviceCode === undefined ? null : digestCode('device', deviceCode),
    redirect: redirect ?? null,
    approval: null,
    keyId: null,
  };
  return { request, handle, deviceCode };
}

/** Keeps a request until it ends, and forgets older ones. @throws KeysError TOO_MANY_REQUESTS */
export async function keepRequest(
  writer: KeyWriter,
  request: ConsentRequest,
  options: Omit<TransactionOptions, 'caller' | 'auditActor'>,
): Promise<void> {
  const transaction = new Transaction(writer, { ...options, caller: OPERATOR, auditActor: actorOf(request) });
  const { consents, now } = transaction;
  await consents.forget({ used: now - KEPT_USED_MS, unused: now - KEPT_MS });
  const recent = await consents.countRecent(now);
  if (recent >= MAX_REQUESTS)
    throw new TooManyRequestsError('Too many applications ask for keys. Try again later.', 60);
  const isNoted = recent < MAX_NOTED_REQUESTS;
  await consents.insert({ ...request, isNoted });
  if (isNoted)
    transaction.noteConsent('CONSENT_REQUEST', request, {
      values: { asked: shortScope(request) },
      address: request.address,
    });
  await transaction.finish();
}

/** What is asked for, as far as it is noted without a key: whoever asks may ask for much. */
export function shortScope(request: ConsentRequest): string {
  const scope = formatScope(request);
  return scope.length > MAX_NOTED_SCOPE ? `${scope.slice(0, MAX_NOTED_SCOPE)}…` : scope;
}

/** The application, as the actor of what nobody else does. */
export function actorOf({ client }: ConsentRequest): AuditActor {
  return { kind: 'REQUEST', id: null, name: client.id };
}

/** The error for a code that no open request has. */
export function unknownRequest(): KeysError {
  return new KeysError('NOT_FOUND', 'No application waits for this code. It may have ended: ask for a new one there.');
}
