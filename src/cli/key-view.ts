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

/** A field of a key as one line of text. */
export function textOf(value: string | readonly string[] | null): string {
  if (value === null || value.length === 0) return '-';
  return typeof value === 'string' ? printable(value, 1000) : value.join(', ');
}

function timeOf(instant: number): string {
  return new Date(instant).toISOString();
}
