import type { StoredKey } from './api-key.ts';
import { isInProgress } from './rotation.ts';

/** A former secret of a key, which is no longer accepted. */
export interface RotatedSecret {
  /** See `digestSecret`. */
  digest: string;
  publicId: string;
  keyId: string;
  /** When it was replaced, in milliseconds since 1970. */
  rotatedAt: number;
}

/** A key without its previous secret; the same object if none is active. */
export function finishedKey(key: StoredKey, now: number): StoredKey {
  const { rotation } = key;
  if (!isInProgress(rotation, now)) return key;
  return { ...key, rotation: { ...rotation, grace: 0, previousEndsAt: now }, previousDigest: null };
}

/** A key in rotation, reduced to its previous secret. */
export function rolledBackKey(key: StoredKey): StoredKey {
  const { rotation, previousDigest } = key;
  return {
    ...key,
    publicId: rotation!.previousPublicId,
    digest: previousDigest!,
    rotation: null,
    previousDigest: null,
  };
}

/** The secrets that a change takes from a key. */
export function rotatedSecrets(before: StoredKey, after: StoredKey, now: number): RotatedSecret[] {
  const kept = new Set([after.digest, after.previousDigest]);
  const { id: keyId, rotation } = before;
  const secrets = [{ digest: before.digest, publicId: before.publicId }];
  if (rotation && before.previousDigest !== null)
    secrets.push({ digest: before.previousDigest, publicId: rotation.previousPublicId });
  return secrets.filter(({ digest }) => !kept.has(digest)).map((secret) => ({ ...secret, keyId, rotatedAt: now }));
}
