import { formatTime } from '../time.ts';
import { GIVEN_FIELDS, type KeyFields } from './api-key.ts';

/** The fields of a key that somebody sets, in the order in which they are shown. */
export const KEY_FIELDS = [...GIVEN_FIELDS, 'enabled'] as const;
/** The fields in which a key can change. */
const FIELDS = [...KEY_FIELDS, 'createdBy'] as const;
/** Those that no declaration has: the secrets of a key, by their public parts. */
type SecretField = 'prefix' | 'previousPrefix';

/** The value of a field as it is shown. */
export type FieldValue = string | readonly string[] | boolean | null;

/** A field of a key that has changed. */
export interface FieldChange {
  field: (typeof FIELDS)[number] | SecretField;
  before: FieldValue;
  after: FieldValue;
}

/** One change of a plan. A key that does not exist yet has no id. */
export interface PlannedChange {
  action: 'CREATE' | 'UPDATE' | 'DELETE';
  name: string;
  id?: string;
  /** The fields of a new key that are set, or the fields of an existing key that change. */
  changes?: FieldChange[];
}

/** The fields that differ between two states of a key. */
export function fieldChanges(before: KeyFields, after: KeyFields): FieldChange[] {
  const [old, fresh] = [fieldsOf(before), fieldsOf(after)];
  return FIELDS.filter((field) => JSON.stringify(old[field]) !== JSON.stringify(fresh[field])).map((field) => ({
    field,
    before: old[field],
    after: fresh[field],
  }));
}

function fieldsOf({ disabledAt, expiresAt, ...key }: KeyFields): Record<(typeof FIELDS)[number], FieldValue> {
  return { ...key, expiresAt: formatTime(expiresAt), enabled: disabledAt === null };
}
