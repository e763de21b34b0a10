import type { StoredKey } from './api-key.ts';

/** A secret that a key had once. It is not accepted any more. */
export interface RotatedSecret {
  /** See `digestSecret`. */
  digest: string;
  /** The public id of the secret. */
  publicId: string;
  /** The id of the key. */
  keyId: string;
  /** When the key lost it, in milliseconds since 1970. */
  rotatedAt: number;
}

/** The secrets that a change takes away from a key. */
export function rotatedSecrets(before: StoredKey, after: StoredKey, now: number): RotatedSecret[] {
  const kept = new Set([after.digest, after.previousDigest]);
  const { id: keyId, rotation } = before;
  const secrets = [{ digest: before.digest, publicId: before.publicId }];
  if (rotation && before.previousDigest !== null)
    secrets.push({ digest: before.previousDigest, publicId: rotation.previousPublicId });
  return secrets.filter(({ digest }) => !kept.has(digest)).map((secret) => ({ ...secret, keyId, rotatedAt: now }));
}
