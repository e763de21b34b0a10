import { OPERATOR } from '../authorization/principal.ts';
import { buildKey, createKey } from '../changes/create.ts';
import { Transaction } from '../changes/transaction.ts';
import { refreshed } from '../changes/transactions.ts';
import { isKeysError } from '../errors.ts';
import { type ApiKey, withoutDigests } from '../key/api-key.ts';
import type { Catalog } from '../permissions/catalog.ts';
import type { KeyWriter } from '../repository.ts';
import { digestCode } from '../requests/codes.ts';
import {
  type ConsentApproval,
  type ConsentFinder,
  type ConsentRequest,
  CONSENTS,
  requestEntry,
} from '../requests/consent-request.ts';
import { answersChallenge } from '../requests/pkce.ts';
import type { Secret } from '../secret/secret.ts';
import { actorOf } from './ask.ts';
import { keyOf } from './approval.ts';

/** What an application shows to get its key. */
export type Redemption = { readonly clientId: string } & (
  | { readonly deviceCode: string }
  | { readonly code: string; readonly redirectUri: string; readonly verifier: string }
);

/** Why it gets none, in the terms of RFC 6749, section 5.2, and RFC 8628, section 3.5. */
export type RefusedRedemption = 'invalid_grant' | 'access_denied' | 'expired_token' | 'authorization_pending';

/** What came of it. A reason is for the log: the application learns no more than the code. */
export type Redeemed =
  | { readonly key: string; readonly apiKey: ApiKey }
  | { readonly refused: RefusedRedemption; readonly reason: string };

export interface RedeemOptions {
  catalog: Catalog;
  /** Milliseconds since 1970. */
  now: number;
  /** For the key. */
  id: string;
  secret: Secret;
  address: string | undefined;
}

/** The reason of a code that no request has. */
export const UNKNOWN = 'unknown code';
const USED = { refused: 'invalid_grant', reason: 'a code that was used' } as const;

/** The digest that a code is found by. */
export function digestRedemption(redemption: Redemption): string {
  return 'code' in redemption ? digestCode('redirect', redemption.code) : digestCode('device', redemption.deviceCode);
}

/** What a code is good for: nothing, a key, or to end the key that it gave. */
export type Standing =
  | { readonly refused: RefusedRedemption; readonly reason: string }
  | { readonly issue: ConsentRequest; readonly approval: ConsentApproval }
  | { readonly revoke: ConsentRequest };

/** Finds out what a code is good for, which changes nothing. */
export async function findStanding(
  consents: Pick<ConsentFinder, 'find'>,
  redemption: Redemption,
  now: number,
): Promise<Standing> {
  const request = await consents.find('codeDigest', digestRedemption(redemption));
  if (!request) return { refused: 'invalid_grant', reason: UNKNOWN };
  const mismatch = findMismatch(request, redemption);
  if (mismatch !== undefined) return { refused: 'invalid_grant', reason: mismatch };
  const { status, flow, approval, expiresAt, keyId } = request;
  if (status === 'USED') return keyId === null ? USED : { revoke: request };
  if (now >= expiresAt) return { refused: flow === 'DEVICE' ? 'expired_token' : 'invalid_grant', reason: 'expired' };
  if (status === 'DENIED') return { refused: 'access_denied', reason: 'denied' };
  return approval ? { issue: request, approval } : { refused: 'authorization_pending', reason: 'pending' };
}

/**
 * Creates the key of a request that was approved, in the transaction that uses it up. A code that comes twice is in the
 * hands of two: the key that it gave is deleted (RFC 6749, section 4.1.2).
 * @throws what `createKey` throws, where whoever agreed may no longer do so
 */
export async function redeem(writer: KeyWriter, redemption: Redemption, options: RedeemOptions): Promise<Redeemed> {
  const standing = await findStanding(writer.port(CONSENTS), redemption, options.now);
  if ('issue' in standing) return issue(writer, standing, options);
  return 'revoke' in standing ? revoke(writer, standing.revoke, options) : standing;
}

/**
 * The answer where the rules refuse what was agreed to: whoever agreed may no longer do so.
 * @throws what is no refusal, such as a failure of the store
 */
export function refusalFor(error: unknown, redemption: Redemption): Redeemed {
  if (!isKeysError(error) || error.code.startsWith('STORE_')) throw error;
  return { refused: 'code' in redemption ? 'invalid_grant' : 'access_denied', reason: `approver: ${error.code}` };
}

/** Why a code is not for whoever shows it; undefined if it is. */
function findMismatch({ client, redirect }: ConsentRequest, redemption: Redemption): string | undefined {
  if (client.id !== redemption.clientId) return 'another client';
  if (!('code' in redemption)) return undefined;
  if (redirect?.uri !== redemption.redirectUri) return 'another redirect URI';
  return answersChallenge(redemption.verifier, redirect.challenge) ? undefined : 'another verifier';
}

async function issue(
  writer: KeyWriter,
  { issue: request, approval }: { issue: ConsentRequest; approval: ConsentApproval },
  { catalog, now, id, secret, address }: RedeemOptions,
): Promise<Redeemed> {
  const { by, keyExpiresAt } = approval;
  if (keyExpiresAt !== null && keyExpiresAt <= now)
    return { refused: request.flow === 'DEVICE' ? 'access_denied' : 'invalid_grant', reason: 'the key has ended' };
  const caller =
    by.id === null
      ? OPERATOR
      : await refreshed({ apiKey: { id: by.id, publicId: by.publicId! }, secret: 'current' }, writer, { catalog, now });
  const transaction = new Transaction(writer, { caller, catalog, now, operator: by.name });
  const input = keyOf(request, approval);
  const { key } = await createKey(transaction, input, buildKey(input, { catalog, now, id, secret }));
  await writer.port(CONSENTS).update({ ...request, status: 'USED', keyId: key.id });
  await writer.port(CONSENTS).rememberClient(key.id, request.client.id);
  transaction.note(requestEntry('CONSENT_EXCHANGE', request, { key, address }));
  await transaction.finish();
  return { key: secret.text, apiKey: withoutDigests(key) };
}

/** Deletes the key that a code gave before, with all that it created. */
async function revoke(
  writer: KeyWriter,
  request: ConsentRequest,
  { catalog, now, address }: RedeemOptions,
): Promise<Redeemed> {
  const options = {
    caller: OPERATOR,
    catalog,
    now,
    operator: request.client.id,
    auditActor: actorOf(request),
  } as const;
  const transaction = new Transaction(writer, options);
  const given = await writer.findWithDescendants([request.keyId!]);
  transaction.note(requestEntry('CONSENT_REPLAY', request, { key: given[0], address }));
  await transaction.delete(given);
  // From then on it is known, and noted no more.
  await writer.port(CONSENTS).update({ ...request, keyId: null });
  await transaction.finish();
  return USED;
}
