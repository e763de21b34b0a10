import { formatTime } from '../basics/index.ts';
import type { JsonObject } from './fields.ts';
import { GIVEN_FIELDS, type KeyFields } from './api-key.ts';
import { fixedFields, namesOf } from './fields.ts';

/** The fields of a key that callers can set, in display order. */
export const KEY_FIELDS = [...GIVEN_FIELDS, 'enabled'] as const;
const FIELDS = [...KEY_FIELDS, ...namesOf(fixedFields), 'createdBy'] as const;
/** Fields without a declaration: the secrets of a key, by their public parts. */
type SecretField = 'prefix' | 'previousPrefix';

export type FieldValue = string | number | readonly string[] | boolean | JsonObject | null;

export interface FieldChange {
  field: (typeof FIELDS)[number] | SecretField | 'expiresIn';
  before: FieldValue;
  after: FieldValue;
}

/** One change of a plan. A new key has no id. */
export interface PlannedChange {
  action: 'CREATE' | 'UPDATE' | 'ROTATE' | 'RENEW' | 'DELETE';
  name: string;
  id?: string;
  /** Since when it has the outdated secret, in milliseconds since 1970. */
  secretSince?: number;
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
