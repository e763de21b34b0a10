import type { ApiKey } from '../key/api-key.ts';
import { lookUp } from './authenticate.ts';
import { type Actor, mayFor } from '../authorization/principal.ts';
import type { KeyRepository } from '../repository.ts';
import { type Status, statusOf } from '../key/status.ts';

/** Whether a secret is let in: the status of its key, or ROTATED for one that a newer secret has replaced. */
export type SecretStatus = Status | 'ROTATED';

/** Whose secret this is, with the public id of the secret itself, or why nobody can tell. */
export type Identification =
  | { key: ApiKey; status: SecretStatus; publicId: string }
  | { unknown: 'malformed' | 'unknown'; publicId?: string | undefined };

/**
 * Finds the key that a secret belongs to, whatever the key's status. A key that the actor may not read is unknown to it.
 * @throws KeysError with a STORE_ code when the store does not answer
 */
export async function identify(
  secret: string,
  repository: KeyRepository,
  actor: Actor,
  now: number,
): Promise<Identification> {
  const found = await lookUp(secret, repository, now);
  const { key } = found;
  const publicId = found.refused ? found.publicId : publicIdOfFound(found);
  if (!key || publicId === undefined || !mayFor(actor, 'READ', key)) {
    return { unknown: found.refused === 'malformed' ? 'malformed' : 'unknown', publicId };
  }
  return { key, status: found.refused === 'rotated' ? 'ROTATED' : statusOf(key, now), publicId };
}

function publicIdOfFound({ key, secret }: { key: ApiKey; secret: 'current' | 'previous' }): string | undefined {
  return secret === 'current' ? key.publicId : key.rotation?.previousPublicId;
}
