import type { AuditActor } from '../../keys/audit/index.ts';
import { assertValid, debug, NETWORK_DIGITS, SOURCE_DIGITS, sourceOf, WIDE_DIGITS } from '../../keys/basics/index.ts';
import type { Transaction } from '../../keys/changes/index.ts';
import { expiryIn, validateExpiry } from '../../keys/key/index.ts';
import {
  type ConsentRedirect,
  type ConsentRequest,
  CONSENTS,
  KEPT_MS,
  KEPT_USED_MS,
  MAX_NETWORK_REQUESTS,
  MAX_NOTED_REQUESTS,
  MAX_REQUESTS,
  REQUEST_MS,
  requestEntry,
} from './consent-request.ts';
import type { Grants } from '../../keys/repository/index.ts';
import { formatScope } from '../../keys/permissions/index.ts';
import type { RandomBytes } from '../../keys/secret/index.ts';
import type { Client } from './clients.ts';
import { createCode, createUserCode, digestCode } from './codes.ts';
import { TooManyRequestsError } from './pace.ts';

/** In characters. */
const MAX_NOTED_SCOPE = 300;

/** A request of an application. */
export interface NewConsentRequest extends Grants {
  client: Client;
  /** Requested lifetime of the key, such as `30d`. */
  keyExpiresIn?: string | undefined;
  /** Address it comes from. */
  address?: string | undefined;
  /** Redirect target for the person; without it, they type a code. */
  redirect?: ConsentRedirect | undefined;
  /** The only address that the key will be valid for. */
  audience?: string | undefined;
  /** The id of a key of the application that the new key will replace. */
  replaces?: string | undefined;
}

/** A request that was just made: the only time its codes are known. */
export interface AskedConsent {
  request: ConsentRequest;
  /** Identifies the request to a person: the user code, or the token of their page. */
  handle: string;
  /** Code for fetching the key; undefined if a redirect carries it. */
  deviceCode: string | undefined;
}

/** Builds a request. @throws ValidationError for an invalid expiry */
export function buildRequest(
  { client, roles, permissions, keyExpiresIn, address, redirect, audience, replaces }: NewConsentRequest,
  { now, id, randomBytes }: { now: number; id: string; randomBytes: RandomBytes },
): AskedConsent {
  if (keyExpiresIn !== undefined) assertValid(validateExpiry(expiryIn(keyExpiresIn), now));
  const handle = redirect ? createCode(randomBytes) : createUserCode(randomBytes);
  const deviceCode = redirect ? undefined : createCode(randomBytes);
  const request: ConsentRequest = {
    id,
    flow: redirect ? 'CODE' : 'DEVICE',
    client: { id: client.id, name: client.name, ...(client.refreshes && { refreshes: true }) },
    audience: audience ?? null,
    replaces: replaces ?? null,
    roles,
    permissions,
    keyExpiresIn: keyExpiresIn ?? null,
    address: address ?? null,
    source: sourceOf(address).source,
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

/** Stores a request until it expires. @param forgets also removes older ones */
export async function keepRequest(transaction: Transaction, request: ConsentRequest, forgets: boolean): Promise<void> {
  const { now } = transaction;
  const consents = transaction.port(CONSENTS);
  if (forgets) await consents.forget({ used: now - KEPT_USED_MS, unused: now - KEPT_MS });
  const { source } = request;
  const network = source.slice(0, NETWORK_DIGITS);
  const recent = await consents.recent(now, network);
  const isOfNetwork = recent.ofNetwork >= MAX_NETWORK_REQUESTS;
  if (isOfNetwork || recent.all >= MAX_REQUESTS) {
    const giving = largestHolder(recent.held, source, isOfNetwork ? network : '');
    if (giving === source) {
      const who = isOfNetwork ? 'in your network are requesting' : 'are requesting';
      throw new TooManyRequestsError(`Too many applications ${who} keys. Try again later.`, 60);
    }
    await consents.removeOldest(now, giving);
    debug('a request made room for another one', () => ({ from: giving, to: source }));
  }
  const isNoted = recent.all < MAX_NOTED_REQUESTS;
  await consents.insert({ ...request, isNoted });
  if (isNoted)
    transaction.note(
      requestEntry('CONSENT_REQUEST', request, { values: { asked: shortScope(request) }, address: request.address }),
    );
}

/**
 * Chooses the source that loses a request to make room: the one with the most requests, first among wide networks, then
 * networks, then addresses. More addresses thus do not give anyone more room, and a source with fewer requests than
 * others always gets some.
 * @param held the source of each request
 * @param within prefix of the sources to compare
 * @returns its source: the newcomer's own if one more request would make it one of the largest
 */
function largestHolder(held: readonly string[], newcomer: string, within: string): string {
  let rivals = [...held.filter((source) => source.startsWith(within)), newcomer];
  for (const digits of [WIDE_DIGITS, NETWORK_DIGITS, SOURCE_DIGITS]) {
    const counts = new Map<string, number>();
    let largest = newcomer.slice(0, digits);
    for (const source of rivals) counts.set(source.slice(0, digits), (counts.get(source.slice(0, digits)) ?? 0) + 1);
    for (const [part, count] of counts) if (count > (counts.get(largest) ?? 0)) largest = part;
    rivals = rivals.filter((source) => source.slice(0, digits) === largest);
  }
  return rivals[0]!;
}

/** The requested scope, shortened for the audit log, since requests without a key can be long. */
export function shortScope(request: ConsentRequest): string {
  const scope = formatScope(request);
  return scope.length > MAX_NOTED_SCOPE ? `${scope.slice(0, MAX_NOTED_SCOPE)}…` : scope;
}

/** The application as an actor, for events that no key causes. */
export function actorOf({ client }: ConsentRequest): AuditActor {
  return { kind: 'REQUEST', id: null, name: client.id };
}
