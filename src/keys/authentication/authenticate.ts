import type { ApiKey } from '../key/api-key.ts';
import { type Chain, chainStatus, findChain } from '../authorization/chain.ts';
import type { Principal } from '../authorization/principal.ts';
import type { KeyRepository } from '../repository.ts';
import { isInProgress } from '../key/rotation.ts';
import { digestSecret, hasOwnForm, readSecret } from '../secret/secret.ts';
import type { Status } from '../key/status.ts';

/** Why a secret is refused. `rotated` means that a newer secret has replaced it. */
export type RefusalReason = 'malformed' | 'unknown' | 'damaged' | 'disabled' | 'expired' | 'rotated';

/**
 * The result of looking up a secret: its key, with its ancestors and the public id of the secret itself, and why it is
 * refused, if it is; or why there is no key.
 */
export type Lookup =
  | { key: ApiKey; chain: Chain; publicId: string; secret: 'current' | 'previous'; refused?: undefined }
  | { key: ApiKey; chain: Chain; publicId: string; refused: 'damaged' | 'disabled' | 'expired' | 'rotated' }
  | { key?: undefined; publicId?: string | undefined; refused: 'malformed' | 'unknown' };

/** The principal of an accepted secret, or why the secret is refused. Only logs may tell the reasons apart. */
export type Authentication = { principal: Principal } | { refused: RefusalReason; publicId?: string };

const REFUSALS = { ACTIVE: undefined, DISABLED: 'disabled', EXPIRED: 'expired' } as const satisfies Record<
  Status,
  RefusalReason | undefined
>;

/**
 * Finds the key that a secret belongs to. The checksum of a secret in our own format is verified first, so that a typo
 * costs no query; a secret in another format may have been imported.
 * @throws KeysError STORE_… if the store does not answer
 */
export async function lookUp(secret: string, repository: KeyRepository, now: number): Promise<Lookup> {
  const publicId = readSecret(secret)?.publicId;
  if (publicId === undefined && hasOwnForm(secret)) return { refused: 'malformed' };
  const found = await repository.findByDigest(digestSecret(secret));
  if (!found) return { refused: publicId === undefined ? 'malformed' : 'unknown', publicId };
  const { key, secret: presented } = found;
  const chain = await findChain(repository, key);
  const known = { key, chain, publicId: found.publicId };
  if (presented === 'rotated' || (presented === 'previous' && !isInProgress(key.rotation, now)))
    return { refused: 'rotated', ...known };
  const isDamaged = chain.keys.some(({ damaged }) => damaged);
  const refused = isDamaged ? 'damaged' : REFUSALS[chainStatus(chain, now)];
  if (refused) return { refused, ...known };
  return { ...known, secret: presented };
}
