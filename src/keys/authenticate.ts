import type { Catalog } from './catalog.ts';
import { type Principal, principalOf } from './principal.ts';
import type { KeyRepository } from './repository.ts';
import { digestSecret, readSecret } from './secret.ts';

/** Who stands behind a secret, or why nobody does. Only logs may tell the reasons apart. */
export type Authentication = { principal: Principal } | { refused: 'malformed' | 'unknown'; publicId?: string };

/**
 * Finds out whose secret this is. The form and the checksum are looked at first, so that a typo costs no look-up.
 * @throws KeysError with a STORE_ code when the store does not answer
 */
export async function authenticate(secret: string, repository: KeyRepository, catalog: Catalog): Promise<Authentication> {
  const read = readSecret(secret);
  if (!read) return { refused: 'malformed' };
  const key = await repository.findByDigest(digestSecret(secret));
  return key ? { principal: principalOf(key, catalog) } : { refused: 'unknown', publicId: read.publicId };
}
