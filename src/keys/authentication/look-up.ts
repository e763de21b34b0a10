import { type Chain, chainOf, chainStatus, type Principal } from '../authorization/index.ts';
import { type ApiKey, isInProgress, type Status } from '../key/index.ts';
import type { FoundBySecret, KeyRepository } from '../repository/index.ts';
import { digestSecret, hasOwnForm, readSecret } from '../secret/index.ts';

/** Why a secret is refused. `rotated` means that a newer secret has replaced it. */
export type RefusalReason = 'malformed' | 'unknown' | 'damaged' | 'disabled' | 'expired' | 'rotated';

/** The key of an accepted secret, with its ancestors and the public id of the secret itself. */
export interface AcceptedLookup {
  key: ApiKey;
  chain: Chain;
  publicId: string;
  secret: 'current' | 'previous';
  refused?: undefined;
}

/** Why a secret is refused, and its key, if there is one. */
export type RefusedLookup =
  | { key: ApiKey; chain: Chain; publicId: string; refused: 'damaged' | 'disabled' | 'expired' | 'rotated' }
  | { key?: undefined; publicId?: string | undefined; refused: 'malformed' | 'unknown' };

/** The result of looking up a secret. */
export type Lookup = AcceptedLookup | RefusedLookup;

/** The principal of an accepted secret, or why the secret is refused. Reasons go to logs only, never to clients. */
export type Authentication = { principal: Principal } | { refused: RefusalReason; publicId?: string };

const REFUSALS = { ACTIVE: undefined, DISABLED: 'disabled', EXPIRED: 'expired' } as const satisfies Record<
  Status,
  RefusalReason | undefined
>;

/**
 * Finds the key that a secret belongs to, at once if the store can. Verifies the checksum of our own format first, so
 * that a typo costs no query; secrets in other formats may have been imported.
 * @param digest that of the secret, if the caller has it already
 * @throws KeysError STORE_… if the store does not answer
 */
export function lookUp(
  secret: string,
  repository: KeyRepository,
  now: number,
  digest: string = digestSecret(secret),
): Lookup | Promise<Lookup> {
  const publicId = readSecret(secret)?.publicId;
  if (publicId === undefined && hasOwnForm(secret)) return { refused: 'malformed' };
  const unknown = { refused: publicId === undefined ? 'malformed' : 'unknown', publicId } as const;
  return lookUpDigest(digest, repository, now, unknown);
}

/**
 * Finds the key of a secret by its digest.
 * @param unknown the result if no key has it
 * @throws KeysError STORE_… if the store does not answer
 */
export function lookUpDigest(
  digest: string,
  repository: KeyRepository,
  now: number,
  unknown: RefusedLookup = { refused: 'unknown' },
): Lookup | Promise<Lookup> {
  const judge = (found: FoundBySecret | undefined): Lookup => (found ? toLookup(found, now) : unknown);
  const found = repository.findByDigest(digest);
  return found instanceof Promise ? found.then(judge) : judge(found);
}

function toLookup({ key, ancestors, publicId, secret }: FoundBySecret, now: number): Lookup {
  const chain = chainOf(key, ancestors);
  const known = { key, chain, publicId };
  if (secret === 'rotated' || (secret === 'previous' && !isInProgress(key.rotation, now)))
    return { refused: 'rotated', ...known };
  const isDamaged = chain.keys.some(({ damaged }) => damaged);
  const refused = isDamaged ? 'damaged' : REFUSALS[chainStatus(chain, now)];
  if (refused) return { refused, ...known };
  return { ...known, secret };
}

/** How the secrets of requests were checked since the program started. */
export interface CheckCounts {
  /** Accepted from memory. */
  remembered: number;
  /** Accepted after a query. */
  found: number;
  /** Refused, by reason. */
  readonly refused: Record<RefusalReason, number>;
  /** Forgotten to make room for others. */
  evicted: number;
}

/** The counts before the first request. */
export function noChecks(): CheckCounts {
  const refused = { malformed: 0, unknown: 0, damaged: 0, disabled: 0, expired: 0, rotated: 0 };
  return { remembered: 0, found: 0, refused, evicted: 0 };
}
