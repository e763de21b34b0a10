import type { Permission, Role } from '../permissions/catalog.ts';
import type { ExpiryRequest } from './expiry.ts';
import type { Rotation } from './rotation.ts';

/** A key as it is known inside the program. Its secret is not part of it. */
export interface ApiKey {
  /** A UUID. */
  id: string;
  name: string;
  description: string | null;
  roles: Role[];
  permissions: Permission[];
  /** The 12 characters that stand open in the secret; one of our making for a secret of another form, see `createImportedId`. */
  publicId: string;
  /** Milliseconds since 1970. */
  createdAt: number;
  /** The id of the key that created it; null where the command line did. */
  createdBy: string | null;
  /** When it ends, in milliseconds since 1970; null where it does not. */
  expiresAt: number | null;
  /** When it was switched off, in milliseconds since 1970; null where it is on. */
  disabledAt: number | null;
  /** Whether it was made from a declaration, and may be deleted when it is declared no longer. */
  managed: boolean;
  /** The secret that it had before, from a rotation until the next change of its secret. */
  rotation: Rotation | null;
}

/** A key with what its secrets are recognised by: what the store keeps. */
export interface StoredKey extends ApiKey {
  /** See `digestSecret`. */
  digest: string;
  /** The digest of the secret before, where there is a rotation. */
  previousDigest: string | null;
}

/** The key without the digests of its secrets, which stay inside the rules. */
export function withoutDigests({ digest: _digest, previousDigest: _previousDigest, ...key }: StoredKey): ApiKey {
  return key;
}

/** What was asked for when a key is made. Texts are as the user wrote them. */
export interface NewKey extends ExpiryRequest {
  name: string;
  description?: string | null;
  roles?: readonly string[];
  permissions?: readonly string[];
  /** Replace the key of that name, if there is one. */
  overwrite?: boolean;
}

/** What is to change in a key; what is left out stays. An `expiresAt` of null takes the end away. */
export interface KeyChange extends ExpiryRequest {
  name?: string;
  description?: string | null;
  roles?: readonly string[];
  permissions?: readonly string[];
}
