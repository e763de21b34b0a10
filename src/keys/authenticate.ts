import type { Catalog } from './catalog.ts';
import { type Principal, principalOf } from './principal.ts';
import type { KeyRepository } from './repository.ts';
import { digestSecret, readSecret } from './secret.ts';
import { type Status, statusOf } from './status.ts';

/** Who stands behind a secret, or why nobody does. Only logs may tell the reasons apart. */
export type Authentication = { principal: Principal } | { refused: 'malformed' | 'unknown' | 'disabled' | 'expired'; publicId?: string };

const REFUSALS: Record<Status, 'disabled' | 'expired' | undefined> = { ACTIVE: undefined, DISABLED: 'disabled', EXPIRED: 'expired' };

/**
 * Finds out whose secret this is. The form and the checksum are looked at first, so that a typo costs no look-up.
 * @throws KeysError with a STORE_ code when the store does not answer
 */
export async function authenticate(secret: string, repository: KeyRepository, catalog: Catalog, now: number): Promise<Authentication> {
  const read = readSecret(secret);
  if (!read) return { refused: 'malformed' };
  const key = await repository.findByDigest(digestSecret(secret));
  const refused = key ? REFUSALS[statusOf(key, now)] : 'unknown';
  return key && !refused ? { principal: principalOf(key, catalog) } : { refused: refused ?? 'unknown', publicId: read.publicId };
}
