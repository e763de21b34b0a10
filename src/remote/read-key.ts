import type {
  Created,
  KeyLimit,
  KeyName,
  KeyState,
  KeyWithAccess,
  NamedIssue,
  Preview,
  Rotated,
} from '../keys/administration.ts';
import type { KeyFields } from '../keys/key/api-key.ts';
import type { Permission } from '../keys/permissions/catalog.ts';
import type { ResourceActions } from '../keys/permissions/permission-set.ts';
import { publicIdOfPrefix, readSecret } from '../keys/secret/secret.ts';
import type { PeriodUsage } from '../keys/usage/periods.ts';
import type { Data } from './connection.ts';

/** Reads a key as `State` of the documents has it. Whatever is not as it should be throws. */
export function readState(data: Data): KeyState {
  const { rotation } = data;
  return {
    apiKey: readFields(data),
    status: data.status,
    disabledByPolicy: data.disabledByPolicy === true,
    unknownGrants: data.unknownGrants,
    rotation: rotation && {
      startedAt: timeIn(rotation.startedAt)!,
      previousPublicId: publicIdIn(rotation.previousPrefix),
      previousEndsAt: timeIn(rotation.previousEndsAt),
    },
    usage: {
      uses: data.uses,
      lastUsedAt: timeIn(data.lastUsedAt),
      previousLastUsedAt: timeIn(rotation?.previousLastUsedAt ?? null),
    },
  };
}

function readFields(data: Data): KeyFields {
  const { id, name, description, limits, allowFrom, createdBy, managed } = data;
  if (typeof id !== 'string' || typeof name !== 'string') throw new TypeError('a key without an id and a name');
  return {
    id,
    name,
    description,
    ...grantsIn(data.grants),
    limits,
    allowFrom,
    publicId: publicIdIn(data.prefix),
    createdAt: timeIn(data.createdAt)!,
    createdBy,
    expiresAt: timeIn(data.expiresAt),
    disabledAt: timeIn(data.disabledAt),
    managed,
  };
}

/** Reads a key with all that it may do. */
export function readAccess(data: Data): KeyWithAccess {
  const limitedBy = data.limitedBy.map(
    ({ keyId, name, expiresAt, permissions, status, limits, allowFrom }: Data): KeyLimit => ({
      ancestor: { id: keyId, name },
      status,
      expiresAt: timeIn(expiresAt),
      permissions: permissionsIn(permissions),
      limits,
      allowFrom,
    }),
  );
  const effectivePermissions = permissionsIn(data.effectivePermissions);
  return { ...readState(data), effectivePermissions, limitedBy, issued: data.issued.map(readIssue) };
}

/** Reads what a key would be. */
export function readPreview(data: Data): Preview {
  const { name, description, limits, allowFrom, grants, expiresAt, effectivePermissions } = data;
  return {
    name,
    description,
    ...grantsIn(grants),
    limits,
    allowFrom,
    expiresAt: timeIn(expiresAt),
    effectivePermissions: permissionsIn(effectivePermissions),
    confusable: [],
  };
}

/** Reads a new key with its secret. */
export function readCreated({ key, apiKey, replaced }: Data): Created {
  return { key: secretIn(key), apiKey: readFields(apiKey), replaced: replaced.map(readName), confusable: [] };
}

/** Reads a key with a new secret. */
export function readRotated({ key, apiKey, created, disabled, issued }: Data): Rotated {
  const state = readState(apiKey);
  return {
    key: secretIn(key),
    apiKey: state.apiKey,
    rotation: state.rotation,
    created: created.map(readFields),
    disabled: disabled.map(readFields),
    issued: issued.map(readIssue),
  };
}

/** Reads what a key did to another one. */
export function readIssue({ name, what, at, disabled }: Data): NamedIssue {
  if (typeof name !== 'string' || typeof what !== 'string') throw new TypeError('not what a key did');
  return { name, what: what as NamedIssue['what'], at: timeIn(at)!, isDisabled: disabled };
}

/** Reads how requests ended in an hour or on a day. */
export function readPeriod({ start, accepted, forbidden, limited, refused }: Data): PeriodUsage {
  return { start: timeIn(start)!, accepted, forbidden, limited, refused };
}

/** Reads what names a key. */
export function readName({ id, name }: Data): KeyName {
  return { id, name };
}

/** Reads a secret, which goes to stdout as it is. */
export function secretIn(text: unknown): string {
  if (typeof text !== 'string' || !readSecret(text)) throw new TypeError('not a secret');
  return text;
}

/** Reads permissions in groups. */
export function permissionsIn(groups: readonly ResourceActions[]): Permission[] {
  return groups.flatMap(({ resource, actions }) => actions.map((action): Permission => `${resource}:${action}`));
}

/** Reads a time into milliseconds since 1970. */
export function timeIn(text: unknown): number | null {
  if (text === null) return null;
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw new TypeError('not a time');
  return time;
}

/** Reads grants, roles first. */
export function grantsIn(grants: string[]): Pick<KeyFields, 'roles' | 'permissions'> {
  const isPermission = (grant: string): grant is Permission => grant.includes(':');
  return { roles: grants.filter((grant) => !isPermission(grant)), permissions: grants.filter(isPermission) };
}

function publicIdIn(prefix: unknown): string {
  const publicId = typeof prefix === 'string' ? publicIdOfPrefix(prefix) : undefined;
  if (publicId === undefined) throw new TypeError('not a prefix');
  return publicId;
}
