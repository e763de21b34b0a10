import { type Actor, type Chain, chainStatus, mayFor } from '../authorization/index.ts';
import type { ApiKey, Status } from '../key/index.ts';
import type { KeyRepository } from '../repository/index.ts';
import { lookUp } from './look-up.ts';

/** The status of a secret: that of its key, or ROTATED if a newer secret has replaced it. */
export type SecretStatus = Status | 'ROTATED';

/** The key that a secret belongs to, with the public id of the secret itself, or why there is none. */
export type Identification =
  | { apiKey: ApiKey; chain: Chain; status: SecretStatus; publicId: string }
  | { unknown: 'malformed' | 'unknown'; publicId?: string | undefined };

/**
 * Finds the key that a secret belongs to, whatever its status. A key that the actor is not allowed to read counts as
 * unknown.
 * @throws KeysError STORE_… if the store does not answer
 */
export async function identify(
  secret: string,
  repository: KeyRepository,
  actor: Actor,
  now: number,
): Promise<Identification> {
  const found = await lookUp(secret, repository, now);
  if (!found.key) return { unknown: found.refused, publicId: found.publicId };
  const { key, chain, publicId, refused } = found;
  if (!mayFor(actor, 'READ', key)) return { unknown: 'unknown', publicId };
  return { apiKey: key, chain, status: refused === 'rotated' ? 'ROTATED' : chainStatus(chain, now), publicId };
}
