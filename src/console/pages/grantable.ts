import { chainExpiry } from '../../keys/authorization/chain.ts';
import type { Refusal } from '../../keys/changes/possible-changes.ts';
import type { ApiKey } from '../../keys/key/api-key.ts';
import { ROLE_MEANINGS } from '../../keys/permissions/built-in.ts';
import { groupPermissions } from '../../keys/permissions/permission-set.ts';
import type { ExpiryBounds } from '../parts/expiry-field.tsx';
import type { Grantable, GrantableRole } from '../parts/grants.ts';
import { inYourWords } from '../parts/notice.tsx';
import type { Visit } from '../visit.tsx';

const ROLES = '{ permissions { roles { role description permissions { resource actions } } } }';

/** What is said to those who may create no more keys, by the policy. */
export const NO_MORE_KEYS =
  'By the policy of this service, your key may have no more live keys than it has created. ' +
  'Delete or disable one first.';

/** What somebody may give to a key, by the rules that decide when they do so. */
export interface AskedGrantable extends Grantable {
  /** Why they may grant nothing; null if they may. */
  readonly reason: string | null;
  /** How many more live keys they may create; null for any number. */
  readonly creatable: number | null;
  readonly ends: {
    /** Why the end cannot be set; null if it can. */
    readonly reason: string | null;
    /** In milliseconds since 1970; null if there is none. */
    readonly latest: number | null;
    readonly required: boolean;
  };
}

/**
 * What somebody may give to a key beside what it has, or to one that they create. Nothing counts as used.
 * @throws KeysError STORE_…
 */
export async function findGrantable({ keys, principal }: Visit, key?: ApiKey): Promise<AskedGrantable> {
  const { catalog } = keys;
  const found = await (key ? keys.grantableTo(key, principal) : keys.grantable(principal));
  const { refusal, latest, required } = await found.ends();
  return {
    reason: describeRefusal(found.refusal),
    withheld: found.withheld,
    creatable: await found.countCreatable(),
    permissions: found.permissions.byResource(),
    roles: found.roles.map((role) => ({
      role,
      description: catalog.meaningOf(role),
      permissions: groupPermissions(catalog.permissionsOf(role)),
    })),
    ends: { reason: describeRefusal(refusal), latest, required },
  };
}

function describeRefusal(refusal: Refusal | null): string | null {
  return refusal && inYourWords(refusal.reason);
}

/** Between now and which time the end of a new key lies. */
export function boundsOf({ now, principal }: Visit, { ends: { latest, required } }: AskedGrantable): ExpiryBounds {
  return { now, end: latest, required, isOwnEnd: latest !== null && latest === chainExpiry(principal.chain) };
}

/**
 * The roles that there are, as far as a key may know: without PERMISSION:READ_ANY, those that are built in, and its
 * own.
 * @throws OperationFailed
 */
export async function askRoles(visit: Visit): Promise<readonly GrantableRole[]> {
  if (!visit.may('PERMISSION:READ_ANY')) return rolesOf(visit);
  return (await visit.ask<{ permissions: { roles: GrantableRole[] } }>(ROLES)).permissions.roles;
}

function rolesOf({ principal }: Visit): GrantableRole[] {
  const builtIn = Object.entries(ROLE_MEANINGS).map(([role, description]) => ({ role, description }));
  const own = principal.apiKey.roles.filter((role) => !(role in ROLE_MEANINGS));
  return [...builtIn, ...own.map((role) => ({ role, description: 'A role of this installation.' }))];
}
