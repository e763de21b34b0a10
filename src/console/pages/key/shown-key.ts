import type { IssuedKind } from '../../../keys/changes/contain.ts';
import type { ResourceActions } from '../../../keys/permissions/permission-set.ts';
import type { KeyStatus } from '../../parts/status.tsx';
import type { Visit } from '../../visit.tsx';

const PERMISSIONS = '{ resource actions }';
const QUERY = `query Key($id: ID!) {
  apiKey(id: $id) {
    id name prefix description roles permissions ${PERMISSIONS} unknownGrants grants limits allowFrom
    status expiresAt lastUsedAt uses createdAt createdBy disabledAt managed
    effectivePermissions ${PERMISSIONS}
    usedPermissions ${PERMISSIONS} unusedPermissions ${PERMISSIONS} suggestedPermissions ${PERMISSIONS}
    suggestedRoles excessPermissions ${PERMISSIONS}
    limitedBy { keyId name status expiresAt permissions ${PERMISSIONS} limits allowFrom }
    rotation { startedAt previousPrefix previousEndsAt previousLastUsedAt }
    descendants(first: 50) {
      count hasMore lastUsedAt
      keys { id name status lastUsedAt createdBy }
    }
    issued { name keyId what at disabled }
  }
}`;

/** A key, as GraphQL tells of it: see `ApiKey` of the schema. Times are RFC 3339. */
export interface ShownKey {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly description: string | null;
  readonly roles: readonly string[];
  readonly permissions: readonly ResourceActions[];
  readonly unknownGrants: readonly string[];
  readonly grants: readonly string[];
  readonly limits: readonly string[];
  readonly allowFrom: readonly string[] | null;
  readonly status: KeyStatus;
  readonly expiresAt: string | null;
  readonly lastUsedAt: string | null;
  readonly uses: number;
  readonly createdAt: string;
  readonly createdBy: string | null;
  readonly disabledAt: string | null;
  readonly managed: boolean;
  readonly effectivePermissions: readonly ResourceActions[];
  readonly usedPermissions: readonly ResourceActions[];
  readonly unusedPermissions: readonly ResourceActions[];
  readonly suggestedRoles: readonly string[];
  /** What it would lose with the suggested grants. */
  readonly excessPermissions: readonly ResourceActions[];
  readonly suggestedPermissions: readonly ResourceActions[];
  readonly limitedBy: readonly ParentKey[];
  readonly rotation: ShownRotation | null;
  readonly descendants: ChildKeys;
  /** What it did to others, and is in force. */
  readonly issued: readonly IssuedChange[];
}

/** What a parent key takes away from a key. */
export interface ParentKey {
  readonly keyId: string;
  readonly name: string | null;
  readonly status: KeyStatus;
  readonly expiresAt: string | null;
  readonly permissions: readonly ResourceActions[];
  readonly limits: readonly string[];
  readonly allowFrom: readonly string[] | null;
}

/** Something that a key did to another one: see `IssuedChange` of the schema. */
export interface IssuedChange {
  readonly name: string;
  readonly keyId: string | null;
  readonly what: IssuedKind;
  readonly at: string;
  readonly disabled: boolean;
}

/** A rotation under way. */
export interface ShownRotation {
  readonly startedAt: string;
  readonly previousPrefix: string;
  readonly previousEndsAt: string | null;
  readonly previousLastUsedAt: string | null;
}

/** The child keys of a key. */
export interface ChildKeys {
  readonly count: number;
  readonly hasMore: boolean;
  readonly lastUsedAt: string | null;
  readonly keys: readonly ChildKey[];
}

/** A child key. */
export type ChildKey = Pick<ShownKey, 'id' | 'name' | 'status' | 'lastUsedAt' | 'createdBy'>;

/** The key that the address of a page names; null if there is none that may be read. @throws OperationFailed */
export async function findKey(visit: Visit): Promise<ShownKey | null> {
  const { apiKey } = await visit.ask<{ apiKey: ShownKey | null }>(QUERY, { id: visit.param('id') });
  return apiKey;
}
