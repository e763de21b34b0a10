import type { AuditActor } from '../../keys/audit/index.ts';
import {
  assertValid,
  debug,
  KeysError,
  NETWORK_DIGITS,
  SOURCE_DIGITS,
  sourceOf,
  WIDE_DIGITS,
} from '../../keys/basics/index.ts';
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

/** What an application asks for. */
export interface NewConsentRequest extends Grants {
  client: Client;
  /** After which time the key is to end, such as `30d`. */
  keyExpiresIn?: string | undefined;
  /** Where it comes from. */
  address?: string | undefined;
  /** Where the person is sent back to; without it, they type a code. */
  redirect?: ConsentRedirect | undefined;
  /** The address that the key is to be for alone. */
  audience?: string | undefined;
  /** The id of a key of the application whose place the key is to take. */
  replaces?: string | undefined;
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

/** Keeps a request until it ends. @param forgets whether older ones are removed @throws KeysError TOO_MANY_REQUESTS */
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
      const who = isOfNetwork ? 'of your network ask' : 'ask';
      throw new TooManyRequestsError(`Too many applications ${who} for keys. Try again later.`, 60);
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
 * Who gives room to a newcomer: of those who hold most, by wide networks first, then by networks, then by addresses.
 * So nobody gets more room by more addresses, and whoever holds less than others always gets some.
 * @param held the source of each request
 * @param within what the sources begin with that are asked
 * @returns its source: the newcomer's own, if with one more that would hold as much as anybody
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

/** What is asked for, as far as it is noted without a key: whoever asks may ask for much. */
export function shortScope(request: ConsentRequest): string {
  const scope = formatScope(request);
  return scope.length > MAX_NOTED_SCOPE ? `${scope.slice(0, MAX_NOTED_SCOPE)}…` : scope;
}

/** The application, as the actor of what nobody else does. */
export function actorOf({ client }: ConsentRequest): AuditActor {
  return { kind: 'REQUEST', id: null, name: client.id };
}

export function unknownRequest(): KeysError {
  return new KeysError('NOT_FOUND', 'No application waits for this code. It may have ended: ask for a new one there.');
}
