import { KeysError, printable } from '../basics/index.ts';
import type { Permission, Role } from '../permissions/index.ts';
import {
  type FieldInput,
  type FieldName,
  fieldsOf,
  givenFields,
  isNone,
  type KeyValues,
  namesOf,
  NO_VALUES,
  restrictionFields,
  RESTRICTIONS,
  type UnknownFields,
  valuesOf,
  type ValuesOf,
  type wideningFields,
} from './fields.ts';
import type { Rotation } from './rotation.ts';

/** An API key. Its secret is not part of it. */
export interface ApiKey extends KeyValues {
  /** A UUID. */
  id: string;
  /** The name, in the form of `normalizeName`; no two keys have the same. */
  name: string;
  /** The granted roles. */
  roles: Role[];
  /** The permissions that are granted besides the roles. */
  permissions: Permission[];
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
  /** True if `apply` created it, so that pruning can delete it. */
  managed: boolean;
  /** The last rotation, even after it has ended, until it is rolled back; null if there is none. */
  rotation: Rotation | null;
  /**
   * Set if its row in the store does not match its checksum, because of a disk error or another program. Such a key is
   * refused, and can only be deleted or replaced.
   */
  damaged?: true;
  /** The values of fields that this version does not know, by id. They are kept unchanged. */
  unknownFields?: UnknownFields;
}

/** The fields given to a key, in display order. */
export const GIVEN_FIELDS = [...namesOf(givenFields), 'expiresAt'] as const satisfies readonly (keyof ApiKey)[];
/** The ones that null removes. */
export const REMOVABLE_FIELDS = [
  ...fieldsOf().flatMap(([name, { none }]) => (none === null ? [name as RemovableField] : [])),
  'expiresAt' as const,
];
type RemovableField = { [Name in FieldName]: null extends FieldInput[Name] ? Name : never }[FieldName];

/** Restrictions on its requests, and on those of its child keys. */
export type KeyRestrictions = ValuesOf<typeof restrictionFields>;
export const RESTRICTION_FIELDS = namesOf(restrictionFields);

export function isUnrestricted(key: Partial<ValuesOf<typeof wideningFields>>): boolean {
  return RESTRICTIONS.every(([name]) => isNone(key[name]));
}

/** The fields that a new key is given. */
export type GivenFields = Pick<ApiKey, (typeof GIVEN_FIELDS)[number]>;
/** The values of a key without any given fields, even a name. */
export const NOTHING_GIVEN: Omit<GivenFields, 'expiresAt'> = valuesOf(givenFields, {});

/** The given fields of an existing key. */
export function givenFieldsOf(key: GivenFields): GivenFields {
  return Object.fromEntries(GIVEN_FIELDS.map((field) => [field, key[field]])) as unknown as GivenFields;
}

/** The fields of a key that are known outside its store. */
export type KeyFields = Omit<ApiKey, 'rotation' | 'damaged' | 'unknownFields'>;

/** A key with the digests of its secrets, as the store keeps it. */
export interface StoredKey extends ApiKey {
  /** See `digestSecret`. */
  digest: string;
  /** The digest of the previous secret; null without a rotation. */
  previousDigest: string | null;
}

/** The defaults of a new key. */
export const BARE_KEY = {
  ...NO_VALUES,
  createdBy: null,
  expiresAt: null,
  disabledAt: null,
  managed: false,
  rotation: null,
  previousDigest: null,
} as const satisfies Partial<StoredKey>;

/** The key without the digests of its secrets, for callers outside `src/keys`. */
export function withoutDigests(stored: ApiKey | StoredKey): ApiKey {
  const { digest: _digest, previousDigest: _previousDigest, ...key } = stored as StoredKey;
  return key;
}

/** Refuses a damaged key, before its values are written elsewhere. @throws KeysError STORE_CORRUPT */
export function requireWhole({ name, damaged }: ApiKey): void {
  if (!damaged) return;
  throw new KeysError(
    'STORE_CORRUPT',
    `The API key "${printable(name)}" is damaged: its row in the key store does not match its checksum. ` +
      'Delete or replace it, or restore a backup.',
  );
}
