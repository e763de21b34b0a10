import { lookUp } from '../../keys/authentication/index.ts';
import { OPERATOR } from '../../keys/authorization/index.ts';
import { finishRotation, Transaction, type TransactionOptions } from '../../keys/changes/index.ts';
import { CONSENTS } from './consent-request.ts';
import type { KeyRepository, KeyWriter } from '../../keys/repository/index.ts';
import { digestSecret } from '../../keys/secret/index.ts';
import { findByRefreshToken } from './refresh.ts';

/** A key to revoke. */
export interface KeyToEnd {
  readonly secret: string;
  /** The application that it was given to. */
  readonly clientId: string;
  /** Keeps a key that has created others, because these would be deleted with it. */
  readonly sparesCreators: boolean;
}

/**
 * Reasons that a key was not revoked: it is not valid, was not given to an application, belongs to another one, or has
 * created others. For the log.
 */
export type RefusedEnd =
  | { readonly refused: 'invalid'; readonly reason: string }
  | { readonly refused: 'not given' | 'other client' }
  | { readonly refused: 'has created'; readonly created: number };

/** The outcome. */
export type Ended = 'ended' | RefusedEnd;

/** Finds out whether a key can be ended, which changes nothing. @returns why it cannot; undefined if it can */
export async function refusalToEnd(
  repository: KeyRepository,
  { secret, clientId }: KeyToEnd,
  now: number,
): Promise<RefusedEnd | undefined> {
  const refresh = await findByRefreshToken(repository.port(CONSENTS), secret);
  const { key, refused } = refresh
    ? { key: await repository.findById(refresh.keyId), refused: undefined }
    : await lookUp(secret, repository, now);
  if (!key || refused) return { refused: 'invalid', reason: refused ?? 'unknown' };
  const owner = await repository.port(CONSENTS).clientOf(key.id);
  if (owner !== undefined) return owner === clientId ? undefined : { refused: 'other client' };
  // A key that was ended in between takes its owner with it.
  return (await repository.findById(key.id)) ? { refused: 'not given' } : { refused: 'invalid', reason: 'unknown' };
}

/**
 * Revokes a key by deleting it with its child keys. A secret that a newer one is about to replace is only revoked
 * itself, since it cannot change keys.
 */
export async function endKey(
  writer: KeyWriter,
  { secret, clientId, sparesCreators }: KeyToEnd,
  { address, ...options }: Omit<TransactionOptions, 'caller' | 'auditActor'> & { address: string | undefined },
): Promise<Ended> {
  const digest = digestSecret(secret);
  const refresh = await findByRefreshToken(writer.port(CONSENTS), secret);
  const [key] = refresh ? [await writer.findById(refresh.keyId)] : await writer.findByDigests([digest]);
  if (!key) return { refused: 'invalid', reason: 'unknown' };
  const family = await writer.findWithDescendants([key.id]);
  const created = family.length - 1;
  const isPrevious = !refresh && key.digest !== digest;
  if (sparesCreators && created > 0 && !isPrevious) return { refused: 'has created', created };
  const auditActor = { kind: 'KEY', id: key.id, name: key.name } as const;
  const transaction = new Transaction(writer, { ...options, caller: OPERATOR, auditActor });
  transaction.note({ action: 'CONSENT_REVOKE', key, after: { client: clientId }, address });
  await (isPrevious ? finishRotation(transaction, key.id) : transaction.delete(family));
  await transaction.finish();
  return 'ended';
}
