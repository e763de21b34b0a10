import type { ApiKey } from '../key/api-key.ts';
import type { Principal } from '../authorization/principal.ts';
import type { KeyRepository } from '../repository.ts';
import { isInProgress } from '../key/rotation.ts';
import { digestSecret, hasOwnForm, readSecret } from '../secret/secret.ts';
import { type Status, statusOf } from '../key/status.ts';

/** Why a secret is not let in. `rotated` is one that a newer one has replaced. */
export type RefusalReason = 'malformed' | 'unknown' | 'disabled' | 'expired' | 'rotated';

/** What a secret leads to: a key that is let in, or the reason why it is not, with the key where there is one. */
export type Lookup =
  | { key: ApiKey; secret: 'current' | 'previous'; refused?: undefined }
  | { refused: RefusalReason; publicId?: string | undefined; key?: ApiKey | undefined };

/** Who stands behind a secret, or why nobody does. Only logs may tell the reasons apart. */
export type Authentication = { principal: Principal } | { refused: RefusalReason; publicId?: string };

const REFUSALS: Record<Status, RefusalReason | undefined> = {
  ACTIVE: undefined,
  DISABLED: 'disabled',
  EXPIRED: 'expired',
};

/**
 * Finds the key that a secret belongs to. A secret of our own form is checked first, so that a typo costs no look-up;
 * one of another form may have been imported.
 * @throws KeysError with a STORE_ code when the store does not answer
 */
export async function lookUp(secret: string, repository: KeyRepository, now: number): Promise<Lookup> {
  const publicId = readSecret(secret)?.publicId;
  if (publicId === undefined && hasOwnForm(secret)) return { refused: 'malformed' };
  const found = await repository.findByDigest(digestSecret(secret));
  if (!found) return { refused: publicId === undefined ? 'malformed' : 'unknown', publicId };
  const { key } = found;
  const isReplaced = found.secret === 'previous' && !isInProgress(key.rotation, now);
  const refused = isReplaced ? 'rotated' : REFUSALS[statusOf(key, now)];
  if (!refused) return found;
  return { refused, key, publicId: found.secret === 'previous' ? key.rotation?.previousPublicId : key.publicId };
}
