import { chainExpiry } from '../../../keys/authorization/index.ts';
import type { Refusal } from '../../../keys/changes/index.ts';
import type { ApiKey } from '../../../keys/key/index.ts';
import { groupPermissions } from '../../../keys/permissions/index.ts';
import type { ExpiryBounds } from '../parts/field.tsx';
import type { Grantable } from '../parts/grants.ts';
import { inYourWords } from '../parts/notice.tsx';
import type { Visit } from '../visit.tsx';

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
export async function findGrantable({ parts: { keys }, principal }: Visit, key?: ApiKey): Promise<AskedGrantable> {
  const { catalog } = keys;
  const found = await keys.permittedChanges.grantable(principal, key);
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

/** What somebody may give to a key that they create. */
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

/** Between now and which time the end of a new key lies. */
function boundsOf({ now, principal }: Visit, { ends: { latest, required } }: AskedGrantable): ExpiryBounds {
  return { now, end: latest, required, isOwnEnd: latest !== null && latest === chainExpiry(principal.chain) };
}
