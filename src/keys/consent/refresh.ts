import { hkdfSync } from 'node:crypto';
import { OPERATOR } from '../authorization/index.ts';
import { UNIT_MS } from '../basics/index.ts';
import { rotatedKey, Transaction, type TransactionOptions } from '../changes/index.ts';
import { type ApiKey, isInProgress, withoutDigests } from '../key/index.ts';
import { CONSENTS, type ConsentFinder, type KeyFinder, type KeyWriter, type Refresh } from '../repository/index.ts';
import { createSecret, type RandomBytes } from '../secret/index.ts';
import { createCode, digestCode } from './codes.ts';

/** How long a secret lasts that its application can replace, in milliseconds. */
const SECRET_MS = UNIT_MS.h;
/** How long the secret before it still works, and brings the same one again: an answer may get lost. */
const GRACE_MS = UNIT_MS.m;
const SALT_BYTES = 32;

/** What an application shows to replace its secret (RFC 6749, section 6). */
export interface RefreshRequest {
  readonly clientId: string;
  readonly refreshToken: string;
  /** What the key is for, if the application says it. */
  readonly audience: string | undefined;
}

/** What came of it. A reason is for the log: the application learns no more than the code. */
export type Refreshed =
  | { readonly key: string; readonly apiKey: ApiKey; readonly refreshToken: string }
  | { readonly refused: 'invalid_grant' | 'invalid_target'; readonly reason: string };

/**
 * A refresh token: the public id of the secret that it came with, what all tokens of a key have in common, and what is
 * its own. By the second, a token that was used is told from one that was made up.
 */
const TOKEN = /^([0-9A-Za-z-]{1,64})\.([\w-]{43})\.([\w-]{43})$/;

/** When a key ends that its application can refresh, in milliseconds since 1970. @param last at the latest */
export function refreshableUntil(now: number, last: number | null): number {
  return Math.min(now + SECRET_MS, last ?? Number.POSITIVE_INFINITY);
}

/** The first refresh token of a key, and what is kept of it. */
export function firstRefresh(
  publicId: string,
  endsAt: number | null,
  randomBytes: RandomBytes,
): { token: string; refresh: Refresh } {
  const family = createCode(randomBytes);
  const token = `${publicId}.${family}.${createCode(randomBytes)}`;
  const digests = { family: digestCode('family', family), current: digestCode('refresh', token) };
  return { token, refresh: { ...digests, previous: null, salt: null, endsAt } };
}

/** What a refresh token brings: always the same by the same salt, but nothing without the token. */
function nextBy(token: string, salt: string) {
  let count = 0;
  const bytes: RandomBytes = (size) => new Uint8Array(hkdfSync('sha256', token, salt, `svc-api ${count++}`, size));
  const secret = createSecret(bytes);
  return { secret, token: `${secret.publicId}.${TOKEN.exec(token)![2]}.${createCode(bytes)}` };
}

/** A key whose application shows a token for it. */
type Refreshing<Key> =
  | { readonly refused: 'invalid_grant' | 'invalid_target'; readonly reason: string }
  | { readonly key: Key; readonly known: Refresh; readonly does: 'rotate' | 'repeat' | 'end' };

/** By what a refresh token belongs to a key, whether it was used or not. */
export async function findByRefreshToken(consents: Pick<ConsentFinder, 'findRefresh'>, token: string) {
  const family = TOKEN.exec(token)?.[2];
  return family === undefined ? undefined : consents.findRefresh(digestCode('family', family));
}

/** Finds out what a refresh token is good for, which changes nothing. */
export async function findRefreshing<Key extends ApiKey>(
  find: Pick<KeyFinder<Key>, 'findById'>,
  consents: Pick<ConsentFinder, 'findRefresh' | 'clientOf'>,
  { clientId, refreshToken, audience }: RefreshRequest,
  now: number,
): Promise<Refreshing<Key>> {
  const refused = (reason: string) => ({ refused: 'invalid_grant', reason }) as const;
  const publicId = refreshToken.split('.', 1)[0];
  const found = await findByRefreshToken(consents, refreshToken);
  const key = found && (await find.findById(found.keyId));
  if (!key) return refused('unknown refresh token');
  if ((await consents.clientOf(key.id)) !== clientId) return refused('another client');
  if (audience !== undefined && audience !== key.audience)
    return { refused: 'invalid_target', reason: 'another resource' };
  const { keyId: _, ...known } = found;
  const digest = digestCode('refresh', refreshToken);
  if (digest === known.current) {
    if (key.publicId !== publicId) return refused('somebody else has rotated the key');
    const isOver = known.endsAt !== null && known.endsAt <= now;
    return isOver || key.disabledAt !== null || key.damaged
      ? refused('the key has ended')
      : { key, known, does: 'rotate' };
  }
  const { previous, salt } = known;
  if (digest !== previous || salt === null || !isInProgress(key.rotation, now)) return { key, known, does: 'end' };
  const isSame = nextBy(refreshToken, salt).secret.publicId === key.publicId;
  return isSame ? { key, known, does: 'repeat' } : refused('somebody else has rotated the key');
}

/**
 * Gives an application a new secret for its key, and a new refresh token. One that was used brings the same again for a
 * moment; after that, it is in the hands of two, and the key is deleted (RFC 9700, section 4.14.2).
 */
export async function refreshKey(
  writer: KeyWriter,
  request: RefreshRequest,
  {
    address,
    randomBytes,
    ...options
  }: Pick<TransactionOptions, 'catalog' | 'now' | 'operator'> & {
    address: string | undefined;
    randomBytes: RandomBytes;
  },
): Promise<Refreshed> {
  const { now } = options;
  const found = await findRefreshing(writer, writer.port(CONSENTS), request, now);
  if ('refused' in found) return found;
  const { key, known, does } = found;
  const auditActor = { kind: 'KEY', id: key.id, name: key.name } as const;
  const transaction = new Transaction(writer, { ...options, caller: OPERATOR, auditActor });
  if (does === 'end') {
    transaction.note({ action: 'CONSENT_REPLAY', key, after: { client: request.clientId }, address });
    await transaction.delete(await writer.findWithDescendants([key.id]));
    await transaction.finish();
    return { refused: 'invalid_grant', reason: 'a refresh token that was used' };
  }
  const salt = does === 'repeat' ? known.salt! : Buffer.from(randomBytes(SALT_BYTES)).toString('base64url');
  const { secret, token } = nextBy(request.refreshToken, salt);
  if (does === 'repeat') return { key: secret.text, apiKey: withoutDigests(key), refreshToken: token };
  const parents = (await transaction.findChain(key)).keys.slice(1);
  const ends = [known.endsAt, ...parents.map(({ expiresAt }) => expiresAt)].filter((end) => end !== null);
  const after = {
    ...rotatedKey(key, secret, { now, grace: GRACE_MS, previousEndsAt: now + GRACE_MS }),
    expiresAt: refreshableUntil(now, ends.length > 0 ? Math.min(...ends) : null),
  };
  const changed = await transaction.change(key, after, 'ROTATE');
  const current = digestCode('refresh', token);
  const kept = { ...known, current, previous: digestCode('refresh', request.refreshToken), salt };
  await writer.port(CONSENTS).keepRefresh(key.id, kept);
  await transaction.finish();
  return { key: secret.text, apiKey: changed.after, refreshToken: token };
}
