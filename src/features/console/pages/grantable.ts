import { chainExpiry } from '../../../keys/authorization/index.ts';
import type { Refusal } from '../../../keys/changes/index.ts';
import type { ApiKey } from '../../../keys/key/index.ts';
import { groupPermissions } from '../../../keys/permissions/index.ts';
import { GrantableAccess } from '../grantable-access.ts';
import type { ExpiryBounds } from '../parts/field.tsx';
import type { Grantable } from '../parts/grants.ts';
import { inYourWords } from '../parts/notice.tsx';
import type { Visit } from '../visit.tsx';

/** Message for people who have reached the number of keys that the policy allows. */
export const NO_MORE_KEYS =
  'Your key has created as many active keys as the policy of this service allows. Delete or disable one first.';

/** Grants that a person can give to a key, by the rules that later decide. */
export interface AskedGrantable extends Grantable {
  /** The reason they can grant nothing, or null. */
  readonly reason: string | null;
  /** How many more active keys they can create; null for no limit. */
  readonly creatable: number | null;
  readonly ends: {
    /** The reason the expiry cannot be set, or null. */
    readonly reason: string | null;
    /** Latest expiry in milliseconds since 1970; null for no limit. */
    readonly latest: number | null;
    readonly required: boolean;
  };
}

/**
 * Grants that a person can add to a key, or give to a new one. Does not count as use of permissions.
 * @throws KeysError STORE_…
 */
export async function findGrantable({ parts: { keys }, principal }: Visit, key?: ApiKey): Promise<AskedGrantable> {
  const { catalog } = keys;
  const found = await keys.feature(GrantableAccess).of(principal, key);
  const { refusal, latest, required } = await found.ends();
  return {
    reason: describeRefusal(found.refusal),
    withheld: found.withheld,
    creatable: await found.countCreatable(),
    permissions: found.permissions.byResource(),
    offered: catalog.offered,
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

/** Grants and expiry that a person can give to a new key. */
export interface Means {
  readonly visit: Visit;
  readonly grantable: AskedGrantable;
  readonly bounds: ExpiryBounds;
}

/** @throws KeysError STORE_… */
export async function meansOf(visit: Visit): Promise<Means> {
  const grantable = await findGrantable(visit);
  return { visit, grantable, bounds: boundsOf(visit, grantable) };
}

/** Bounds for the expiry of a new key. */
function boundsOf({ now, principal }: Visit, { ends: { latest, required } }: AskedGrantable): ExpiryBounds {
  return { now, end: latest, required, isOwnEnd: latest !== null && latest === chainExpiry(principal.chain) };
}
