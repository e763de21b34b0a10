import { OPERATOR } from '../../keys/authorization/index.ts';
import { UNIT_MS } from '../../keys/basics/index.ts';
import { rotatedKey, Transaction, type TransactionOptions } from '../../keys/changes/index.ts';
import { type ApiKey, secretSince, withoutDigests } from '../../keys/key/index.ts';
import { CONSENTS, type ConsentFinder, type Refresh } from './consent-request.ts';
import type { KeyFinder, KeyRepository, KeyWriter } from '../../keys/repository/index.ts';
import { createSecret, prefixIn, type RandomBytes, type Secret } from '../../keys/secret/index.ts';
import { bytesFrom, createCode, createSalt, digestCode } from './codes.ts';

/** Lifetime of a secret that its application can refresh, in milliseconds. */
const SECRET_MS = UNIT_MS.h;
/**
 * Time in which an application gets the same secret again, in milliseconds: half of its lifetime. So a key never has more
 * than two secrets, and each lasts as long as its `expires_in` said.
 */
const AGAIN_MS = SECRET_MS / 2;
/**
 * Maximum time that a used token still returns the newest pair. It stops with the next refresh, because only one is
 * remembered.
 */
export const MAX_LEEWAY_MS = AGAIN_MS;
/** Time in which the reuse of an older token is logged once. */
const NOTED_MS = UNIT_MS.d;

/** Settings for refreshing keys. Times are in milliseconds. */
export interface RefreshSettings {
  /** Time that a used token still returns the newest pair, at most `MAX_LEEWAY_MS`. */
  readonly leeway: number;
  /** Time after the approval that they can be refreshed; null for as long as approved. */
  readonly lifetime: number | null;
}

/** The defaults. */
export const DEFAULT_REFRESH: RefreshSettings = { leeway: MAX_LEEWAY_MS, lifetime: null };

/** A refresh request of an application (RFC 6749, section 6). */
export interface RefreshRequest {
  readonly clientId: string;
  readonly refreshToken: string;
  /** The address that the key is for, if given. */
  readonly audience: string | undefined;
}

/** The secrets that an application gets, and when, in milliseconds since 1970. */
export interface GivenPair {
  readonly key: string;
  readonly apiKey: ApiKey;
  readonly refreshToken?: string | undefined;
  readonly at: number;
}

interface RefusedRefresh {
  readonly refused: 'invalid_grant' | 'invalid_target';
  readonly reason: string;
}

/** The outcome. The reason is only logged; the application gets just the error code. */
export type Refreshed = GivenPair | RefusedRefresh;

/** A refresh token: the common part of all tokens of a key, and its own part, which its secret is derived from. */
const TOKEN = /^([\w-]{43})\.([\w-]{43})$/;

/** A secret, and the token that replaces it. */
interface Pair {
  readonly secret: Secret;
  readonly token: string;
}

/** Expiry of a refreshable key, in milliseconds since 1970. @param last latest expiry */
export function refreshableUntil(now: number, last: number | null): number {
  return Math.min(now + SECRET_MS, last ?? Number.POSITIVE_INFINITY);
}

/** The first pair of a key, and its stored form. */
export function firstPair(
  endsAt: number | null,
  randomBytes: RandomBytes,
  prefix: string,
): Pair & { refresh: Refresh } {
  const family = createCode(randomBytes);
  const pair = pairOf(family, createCode(randomBytes), prefix);
  const digests = { family: digestCode('family', family), current: digestCode('refresh', pair.token) };
  return { ...pair, refresh: { ...digests, previous: null, salt: null, endsAt } };
}

function pairOf(family: string, own: string, prefix: string): Pair {
  return { secret: createSecret(bytesFrom(own, ''), prefix), token: `${family}.${own}` };
}

/** The pair that a token is of. */
function presentPair(token: string, prefix: string): Pair {
  const [, family, own] = TOKEN.exec(token)!;
  return pairOf(family!, own!, prefix);
}

/** The pair that replaces that of a token: always the same by the same salt, but nothing without the token. */
function nextPair(token: string, salt: string, prefix: string): Pair {
  return pairOf(TOKEN.exec(token)![1]!, createCode(bytesFrom(token, salt)), prefix);
}

/** A key whose application shows a token for it: the newest pair is good enough, or is replaced. */
type Refreshing<Key> =
  | (RefusedRefresh & { readonly reused?: Key })
  | { readonly key: Key; readonly pair: Pair }
  | { readonly key: Key; readonly replaces: Refresh };

/** Finds the key of a refresh token, used or not. */
export async function findByRefreshToken(consents: Pick<ConsentFinder, 'findRefresh'>, token: string) {
  const family = TOKEN.exec(token)?.[1];
  return family === undefined ? undefined : consents.findRefresh(digestCode('family', family));
}

/** Finds the outcome of a refresh token, without changing anything. */
export async function findRefreshing<Key extends ApiKey>(
  find: Pick<KeyFinder<Key>, 'findById'>,
  consents: Pick<ConsentFinder, 'findRefresh' | 'clientOf'>,
  request: RefreshRequest,
  options: { now: number; leeway: number },
): Promise<Refreshing<Key>> {
  const { clientId, refreshToken, audience } = request;
  const { now, leeway } = options;
  const refused = (reason: string) => ({ refused: 'invalid_grant', reason }) as const;
  const found = await findByRefreshToken(consents, refreshToken);
  const key = found && (await find.findById(found.keyId));
  if (!key) return refused('unknown refresh token');
  if ((await consents.clientOf(key.id)) !== clientId) return refused('another client');
  if (audience !== undefined && audience !== key.audience)
    return { refused: 'invalid_target', reason: 'another resource' };
  const { keyId: _, ...known } = found;
  const { current, previous, salt, endsAt } = known;
  const digest = digestCode('refresh', refreshToken);
  const since = secretSince(key);
  const isPrevious = digest === previous && salt !== null && now < since + leeway;
  if (digest !== current && !isPrevious)
    return { ...refused('a refresh token that was replaced'), ...(!key.damaged && { reused: key }) };
  const prefix = prefixIn(key.publicId);
  const pair = isPrevious ? nextPair(refreshToken, salt, prefix) : presentPair(refreshToken, prefix);
  if (pair.secret.publicId !== key.publicId) {
    // Another process may have refreshed the pair since the lookup.
    const isOutdated = (await findByRefreshToken(consents, refreshToken))?.current !== current;
    return isOutdated
      ? findRefreshing(find, consents, request, options)
      : refused('the key was rotated by someone else');
  }
  const isOver = endsAt !== null && endsAt <= now;
  if (isOver || key.disabledAt !== null || key.damaged) return refused('the key has ended');
  const isYoung = now < Math.min(since + AGAIN_MS, key.expiresAt ?? Number.POSITIVE_INFINITY);
  return isPrevious || isYoung ? { key, pair } : { key, replaces: known };
}

/** The parts that a refresh needs. */
type RefreshOptions = Pick<TransactionOptions, 'catalog' | 'now' | 'operator' | 'listeners'> & {
  readonly leeway: number;
  readonly randomBytes: RandomBytes;
};

/**
 * Gives an application the newest pair for its key, and a new one once half of the secret's lifetime is over. The previous
 * secret lasts as long as its `expires_in` said.
 */
export async function refreshKey(
  writer: KeyWriter,
  request: RefreshRequest,
  { leeway, randomBytes, ...options }: RefreshOptions,
): Promise<Refreshed> {
  const { now } = options;
  const found = await findRefreshing(writer, writer.port(CONSENTS), request, { now, leeway });
  if ('refused' in found) return found;
  const { key } = found;
  if ('pair' in found) return given(found.pair, withoutDigests(key), now);
  const known = found.replaces;
  const transaction = new Transaction(writer, { ...options, caller: OPERATOR, auditActor: actorOfKey(key) });
  const salt = createSalt(randomBytes);
  const { secret, token } = nextPair(request.refreshToken, salt, options.catalog.prefix);
  const parents = (await transaction.findChain(key)).keys.slice(1);
  const ends = [known.endsAt, ...parents.map(({ expiresAt }) => expiresAt)].filter((end) => end !== null);
  const said = Math.min(secretSince(key) + SECRET_MS, key.expiresAt ?? Number.POSITIVE_INFINITY);
  const previousEndsAt = Math.max(said, now);
  const after = {
    ...rotatedKey(key, secret, { now, grace: previousEndsAt - now, previousEndsAt }),
    expiresAt: refreshableUntil(now, ends.length > 0 ? Math.min(...ends) : null),
  };
  const changed = await transaction.change(key, after, 'ROTATE');
  const current = digestCode('refresh', token);
  const kept = { ...known, current, previous: digestCode('refresh', request.refreshToken), salt };
  await writer.port(CONSENTS).keepRefresh(key.id, kept);
  await transaction.finish();
  return given({ secret, token }, changed.after, now);
}

function given({ secret, token }: Pair, apiKey: ApiKey, at: number): GivenPair {
  return { key: secret.text, apiKey, refreshToken: token, at };
}

function actorOfKey({ id, name }: ApiKey) {
  return { kind: 'KEY', id, name } as const;
}

/** Checks whether the reuse of an old token of this key was logged recently. */
export async function isReuseNoted({ auditLog }: Pick<KeyRepository, 'auditLog'>, { id }: ApiKey, now: number) {
  const wanted = { apiKey: id, action: 'CONSENT_REPLAY', since: now - NOTED_MS, order: 'newest', limit: 1 } as const;
  return (await auditLog.find(wanted)).length > 0;
}

/**
 * Logs that an old token was used again: by an application with two copies of its state, or by someone with a stolen
 * one.
 */
export async function noteReuse(
  writer: KeyWriter,
  key: ApiKey,
  {
    clientId,
    address,
    ...options
  }: Pick<TransactionOptions, 'catalog' | 'now' | 'operator' | 'listeners'> & {
    clientId: string;
    address: string | undefined;
  },
): Promise<void> {
  const auditActor = { kind: 'REQUEST', id: null, name: clientId } as const;
  const transaction = new Transaction(writer, { ...options, caller: OPERATOR, auditActor });
  transaction.note({ action: 'CONSENT_REPLAY', key, after: { client: clientId }, address });
  await transaction.finish();
}
