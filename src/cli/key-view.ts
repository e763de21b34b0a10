import type { ApiKey } from '../keys/api-key.ts';
import { prefixOf } from '../keys/secret.ts';
import { type Status, statusOf } from '../keys/status.ts';
import { printable } from '../keys/text.ts';

/** A key in the JSON of every command: a closed list of fields. Times are by RFC 3339, in UTC. */
export interface KeyJson {
  id: string;
  name: string;
  description: string | null;
  roles: string[];
  permissions: string[];
  prefix: string;
  status: Status;
  createdAt: string;
  createdBy: string | null;
  expiresAt: string | null;
  disabledAt: string | null;
}

/** A key as JSON, its status being that at `now`, in milliseconds since 1970. */
export function keyJson(key: ApiKey, now: number): KeyJson {
  return {
    id: key.id,
    name: key.name,
    description: key.description,
    roles: key.roles,
    permissions: key.permissions,
    prefix: prefixOf(key.publicId),
    status: statusOf(key, now),
    createdAt: timeOf(key.createdAt),
    createdBy: key.createdBy,
    expiresAt: key.expiresAt === null ? null : timeOf(key.expiresAt),
    disabledAt: key.disabledAt === null ? null : timeOf(key.disabledAt),
  };
}

/** What a change of a key, or a new one, is made of, in the order in which it is shown. */
const FIELDS = ['name', 'description', 'roles', 'permissions', 'expiresAt', 'enabled'] as const;
type FieldValue = string | readonly string[] | boolean | null;

/** A field of a key that has changed. */
export interface FieldChange {
  field: (typeof FIELDS)[number];
  before: FieldValue;
  after: FieldValue;
}

/** What differs between two states of a key. */
export function changesOf(before: ApiKey, after: ApiKey): FieldChange[] {
  const [old, fresh] = [fieldsOf(before), fieldsOf(after)];
  return FIELDS.filter((field) => JSON.stringify(old[field]) !== JSON.stringify(fresh[field])).map((field) => ({
    field,
    before: old[field],
    after: fresh[field],
  }));
}

function fieldsOf({ disabledAt, expiresAt, ...key }: ApiKey): Record<FieldChange['field'], FieldValue> {
  return { ...key, expiresAt: expiresAt === null ? null : timeOf(expiresAt), enabled: disabledAt === null };
}

/** A change of a field as one line of text. */
export function textOfChange({ field, before, after }: FieldChange): string {
  return `${field}: ${textOf(before)} -> ${textOf(after)}`;
}

/** A field of a key as one line of text. */
export function textOf(value: FieldValue): string {
  if (typeof value === 'boolean') return String(value);
  if (value === null || value.length === 0) return '-';
  return typeof value === 'string' ? printable(value, 1000) : value.join(', ');
}

/** A time in milliseconds since 1970 by RFC 3339, in UTC. */
export function timeOf(instant: number): string {
  return new Date(instant).toISOString();
}
