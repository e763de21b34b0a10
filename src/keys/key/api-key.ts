import type { Limit } from '../limit.ts';
import type { Permission, Role } from '../permissions/catalog.ts';
import type { ExpiryRequest } from './expiry.ts';
import type { Rotation } from './rotation.ts';

/** An API key. Its secret is not part of it. */
export interface ApiKey {
  /** A UUID. */
  id: string;
  /** The name, in the form of `normalizeName`; no two keys have the same. */
  name: string;
  /** Free text of at most 1,000 code points; null if there is none. */
  description: string | null;
  /** The granted roles. */
  roles: Role[];
  /** The permissions that are granted besides the roles. */
  permissions: Permission[];
  /** How many requests it may make, at most one limit for each unit; empty if it has no limits of its own. */
  limits: readonly Limit[];
  /** The networks that it may be used from, in the form of `parseNetworks`; null for anywhere. */
  allowFrom: readonly string[] | null;
  /** The 12 public characters of the secret; for a secret in another format, see `createImportedId`. */
  publicId: string;
  /** When it was created, in milliseconds since 1970. */
  createdAt: number;
  /** The id of the key that created it; null if the operator did. */
  createdBy: string | null;
  /** When it expires, in milliseconds since 1970; null if it never does. */
  expiresAt: number | null;
  /** When it was disabled, in milliseconds since 1970; null while it is enabled. */
  disabledAt: number | null;
  /** Whether an apply created it, so that pruning may delete it. */
  managed: boolean;
  /** The last rotation, until it is finished, rolled back or followed by another; null if there is none. */
  rotation: Rotation | null;
  /**
   * Set if its row in the store does not match its checksum: a disk error, or another program, has changed it.
   * Such a key is not accepted, and can only be deleted or replaced.
   */
  damaged?: true;
}

/** The fields that whoever creates a key gives it, in the order in which they are shown. */
export const GIVEN_FIELDS = [
  'name',
  'description',
  'roles',
  'permissions',
  'limits',
  'allowFrom',
  'expiresAt',
] as const satisfies readonly (keyof ApiKey)[];
/** Those of them that hold its requests. */
export const HOLDING_FIELDS = ['limits', 'allowFrom'] as const satisfies readonly (keyof ApiKey)[];

/** What whoever creates a key gives it. */
export type GivenFields = Pick<ApiKey, (typeof GIVEN_FIELDS)[number]>;

/** The same of a key that there is. */
export function givenFieldsOf(key: ApiKey): GivenFields {
  return Object.fromEntries(GIVEN_FIELDS.map((field) => [field, key[field]])) as unknown as GivenFields;
}

/** What of a key is known outside its store as well. */
export type KeyFields = Omit<ApiKey, 'rotation' | 'damaged'>;

/** A key with the digests of its secrets, as the store keeps it. */
export interface StoredKey extends ApiKey {
  /** See `digestSecret`. */
  digest: string;
  /** The digest of the previous secret; null without a rotation. */
  previousDigest: string | null;
}

/** The key without the digests of its secrets, for callers outside `src/keys`. */
export function withoutDigests({ digest: _digest, previousDigest: _previousDigest, ...key }: StoredKey): ApiKey {
  return key;
}

/** A request to create a key, with at least one role or permission. Texts are as the user wrote them. */
export interface NewKey extends ExpiryRequest {
  /** 1 to 100 letters, digits and spaces. */
  name: string;
  /** At most 1,000 code points, without control characters. */
  description?: string | null;
  /** Names of roles, case-insensitive. */
  roles?: readonly string[];
  /** Permissions as `RESOURCE:ACTION`, case-insensitive. */
  permissions?: readonly string[];
  /** How many requests it may make, such as `100/m`; each unit (s, m, h, d, month) once. Default: no limits. */
  limits?: readonly string[];
  /** The networks that it may be used from, such as `10.0.0.0/8`, at least one. Default: anywhere. */
  allowFrom?: readonly string[] | null;
  /** Replace the key of that name, if there is one. */
  overwrite?: boolean;
}

/** Changes to a key; omitted fields stay as they are. An `expiresAt` of null removes the expiry. */
export interface KeyChange extends ExpiryRequest {
  /** The new name. */
  name?: string;
  /** The new description; null removes it. */
  description?: string | null;
  /** Names of all roles that the key is to have, case-insensitive. */
  roles?: readonly string[];
  /** All permissions that the key is to have besides its roles, as `RESOURCE:ACTION`, case-insensitive. */
  permissions?: readonly string[];
  /** All limits that the key is to have; an empty list removes them. */
  limits?: readonly string[];
  /** All networks that the key may be used from; null for anywhere. */
  allowFrom?: readonly string[] | null;
}
