import { chainExpiry, mayFor, OPERATOR } from '../../keys/authorization/index.ts';
import { isKeysError } from '../../keys/basics/index.ts';
import { buildKey, createKey, refreshed, Transaction, type TransactionOptions } from '../../keys/changes/index.ts';
import { type ApiKey, withoutDigests } from '../../keys/key/index.ts';
import type { Catalog } from '../../keys/permissions/index.ts';
import {
  type ConsentApproval,
  type ConsentFinder,
  type ConsentRequest,
  CONSENTS,
  requestEntry,
} from './consent-request.ts';
import type { KeyFinder, KeyWriter } from '../../keys/repository/index.ts';
import { createSecret, prefixIn, type RandomBytes } from '../../keys/secret/index.ts';
import { keyOf } from './approval.ts';
import { actorOf } from './ask.ts';
import { bytesFrom, createSalt, digestCode } from './codes.ts';
import { answersChallenge } from './pkce.ts';
import { firstPair, type GivenPair, refreshableUntil } from './refresh.ts';

/**
 * For how long a code brings the same key again, in milliseconds: browsers call an application back at `[::1]` and at
 * `127.0.0.1`.
 */
const AGAIN_MS = 10_000;

/** The proof that an application shows to get its key. */
export type Redemption = {
  readonly clientId: string;
  /** The only address that the key is to be valid for, if given. */
  readonly audience?: string | undefined;
} & (
  | { readonly deviceCode: string }
  | { readonly code: string; readonly redirectUri: string; readonly verifier: string }
);

/** Reasons for giving no key, in terms of RFC 6749, section 5.2, RFC 8628, section 3.5, and RFC 8707. */
export type RefusedRedemption =
  | 'invalid_grant'
  | 'invalid_target'
  | 'access_denied'
  | 'expired_token'
  | 'authorization_pending';

/** The outcome. The reason is only logged; the application gets just the error code. */
export type Redeemed = GivenPair | { readonly refused: RefusedRedemption; readonly reason: string };

interface RedeemOptions {
  catalog: Catalog;
  /** Milliseconds since 1970. */
  now: number;
  listeners: TransactionOptions['listeners'];
  /** For the key. */
  id: string;
  randomBytes: RandomBytes;
  /** Time that the application can refresh its key, in milliseconds; null for as long as approved. */
  lifetime: number | null;
  address: string | undefined;
}

export const UNKNOWN = 'unknown code';
const USED = { refused: 'invalid_grant', reason: 'a code that was used' } as const;

export function digestRedemption(redemption: Redemption): string {
  return 'code' in redemption ? digestCode('redirect', redemption.code) : digestCode('device', redemption.deviceCode);
}

/** The outcome of a code: nothing, a key, the same key again, or the revocation of the key it gave. */
type Standing =
  | { readonly refused: RefusedRedemption; readonly reason: string }
  | { readonly issue: ConsentRequest; readonly approval: ConsentApproval }
  | { readonly repeat: ConsentRequest; readonly salt: string }
  | { readonly revoke: ConsentRequest };

/** Finds the outcome of a code, without changing anything. */
export async function findStanding(
  consents: Pick<ConsentFinder, 'find'>,
  redemption: Redemption,
  now: number,
): Promise<Standing> {
  const request = await consents.find('codeDigest', digestRedemption(redemption));
  if (!request) return { refused: 'invalid_grant', reason: UNKNOWN };
  const mismatch = findMismatch(request, redemption);
  if (mismatch !== undefined) return { refused: 'invalid_grant', reason: mismatch };
  const { status, flow, approval, expiresAt, keyId, audience, given } = request;
  if (audience && redemption.audience !== undefined && audience !== redemption.audience)
    return { refused: 'invalid_target', reason: 'another resource' };
  if (status === 'USED') {
    if (keyId === null) return USED;
    // The verifier shows that it is the same application.
    const isRepeat = given && 'verifier' in redemption && now < given.at + AGAIN_MS;
    return isRepeat ? { repeat: request, salt: given.salt } : { revoke: request };
  }
  if (now >= expiresAt) return { refused: flow === 'DEVICE' ? 'expired_token' : 'invalid_grant', reason: 'expired' };
  if (status === 'DENIED') return { refused: 'access_denied', reason: 'denied' };
  return approval ? { issue: request, approval } : { refused: 'authorization_pending', reason: 'pending' };
}

/**
 * Creates the key of an approved request, in the transaction that uses it up. A code that is sent again later has
 * leaked, so its key is deleted (RFC 6749, section 4.1.2).
 * @throws as `createKey`, if the approver is no longer allowed to
 */
export async function redeem(writer: KeyWriter, redemption: Redemption, options: RedeemOptions): Promise<Redeemed> {
  const standing = await findStanding(writer.port(CONSENTS), redemption, options.now);
  if ('issue' in standing) return issue(writer, standing, redemption, options);
  if ('repeat' in standing) return repeatKey(writer, standing, redemption, options.now);
  return 'revoke' in standing ? revoke(writer, standing.revoke, options) : standing;
}

/**
 * The answer if the approver is no longer allowed to create the key.
 * @throws any other error, such as a failure of the store
 */
export function refusalFor(error: unknown, redemption: Redemption): Redeemed {
  if (!isKeysError(error) || error.code.startsWith('STORE_')) throw error;
  return { refused: 'code' in redemption ? 'invalid_grant' : 'access_denied', reason: `approver: ${error.code}` };
}

/** The reason that this client may not redeem the code, if any. */
function findMismatch({ client, redirect }: ConsentRequest, redemption: Redemption): string | undefined {
  if (client.id !== redemption.clientId) return 'another client';
  if (!('code' in redemption)) return undefined;
  if (redirect?.uri !== redemption.redirectUri) return 'another redirect URI';
  return answersChallenge(redemption.verifier, redirect.challenge) ? undefined : 'another verifier';
}

async function issue(
  writer: KeyWriter,
  { issue: request, approval }: { issue: ConsentRequest; approval: ConsentApproval },
  redemption: Redemption,
  { catalog, now, listeners, id, randomBytes, lifetime, address }: RedeemOptions,
): Promise<Redeemed> {
  const { by, keyExpiresAt } = approval;
  if (keyExpiresAt !== null && keyExpiresAt <= now)
    return { refused: request.flow === 'DEVICE' ? 'access_denied' : 'invalid_grant', reason: 'the key has ended' };
  const caller =
    by.id === null
      ? OPERATOR
      : await refreshed({ apiKey: { id: by.id, publicId: by.publicId! }, secret: 'current' }, writer, { catalog, now });
  const transaction = new Transaction(writer, { caller, catalog, now, operator: by.name, listeners });
  const consents = writer.port(CONSENTS);
  const audience = request.audience ?? redemption.audience ?? null;
  const replaced = await findReplaced(writer, consents, { ...request, audience });
  const agreed = keyExpiresAt ?? (caller === OPERATOR ? null : chainExpiry(caller.chain));
  const end = lifetime === null ? agreed : Math.min(now + lifetime, agreed ?? Number.POSITIVE_INFINITY);
  const salt = createSalt(randomBytes);
  const { secret, token, refresh } = firstOf(request, redemption, { salt, end, prefix: catalog.prefix });
  const input = keyOf(request, { ...approval, ...(refresh && { keyExpiresAt: refreshableUntil(now, end) }) });
  const { key } = await createKey(transaction, input, buildKey(input, { catalog, now, id, secret, audience }));
  await consents.update({ ...request, status: 'USED', keyId: key.id, given: { at: now, salt } });
  await consents.rememberClient(key.id, { clientId: request.client.id, refresh });
  transaction.note(requestEntry('CONSENT_EXCHANGE', request, { key, address }));
  if (replaced && (replaced.createdBy === key.createdBy || mayFor(caller, 'DELETE', replaced)))
    await transaction.delete(await writer.findWithDescendants([replaced.id]));
  await transaction.finish();
  return { key: secret.text, apiKey: withoutDigests(key), refreshToken: token, at: now };
}

/** The first secrets of an application. They are derived from its code, so that they can be repeated without being stored. */
function firstOf(
  { client }: ConsentRequest,
  redemption: Redemption,
  { salt, end, prefix }: { salt: string; end: number | null; prefix: string },
): Partial<ReturnType<typeof firstPair>> & Pick<ReturnType<typeof firstPair>, 'secret'> {
  const code = 'code' in redemption ? `${redemption.code} ${redemption.verifier}` : redemption.deviceCode;
  const bytes = bytesFrom(code, salt);
  return client.refreshes ? firstPair(end, bytes, prefix) : { secret: createSecret(bytes, prefix) };
}

/** Answers a code once more that was just used, by the same key, as long as that has the same secret. */
export async function repeatKey(
  find: Pick<KeyFinder, 'findById'>,
  { repeat: request, salt }: { repeat: ConsentRequest; salt: string },
  redemption: Redemption,
  now: number,
): Promise<Redeemed> {
  const apiKey = await find.findById(request.keyId!);
  if (!apiKey) return USED;
  const prefix = prefixIn(apiKey.publicId);
  const { secret, token } = firstOf(request, redemption, { salt, end: null, prefix });
  if (apiKey.publicId !== secret.publicId) return USED;
  return { key: secret.text, apiKey: withoutDigests(apiKey), refreshToken: token, at: now };
}

/** The key that the key of a request will replace: one of the same application, for the same address. */
export async function findReplaced<Key extends ApiKey>(
  find: Pick<KeyFinder<Key>, 'findById'>,
  consents: Pick<ConsentFinder, 'clientOf'>,
  { client, audience, replaces }: Pick<ConsentRequest, 'client' | 'audience' | 'replaces'>,
): Promise<Key | undefined> {
  const found = replaces ? await find.findById(replaces) : undefined;
  return found && found.audience === audience && (await consents.clientOf(found.id)) === client.id ? found : undefined;
}

/** Deletes the key that a code was exchanged for before, with all its child keys. */
async function revoke(
  writer: KeyWriter,
  request: ConsentRequest,
  { catalog, now, listeners, address }: RedeemOptions,
): Promise<Redeemed> {
  const options = {
    caller: OPERATOR,
    catalog,
    now,
    operator: request.client.id,
    auditActor: actorOf(request),
    listeners,
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
