import type { Permission } from '../../../keys/permissions/catalog.ts';
import { groupPermissions, PermissionSet, type ResourceActions } from '../../../keys/permissions/permission-set.ts';
import { permissionsOf } from '../../parts/grants.ts';
import type { Visit } from '../../visit.tsx';
import { grantedTo } from './granted.ts';
import type { ShownKey } from './shown-key.ts';
import { askPeriods } from './usage-section.tsx';

const DAY_MS = 86_400_000;
const LOOKED_BACK_DAYS = 90;
const TRUSTED_DAYS = 7;

/** Whether there is something to take away from a key, and something to leave. */
export function canNarrow(key: ShownKey): boolean {
  const suggested = findSuggested(key);
  return suggested.length > 0 && suggested.toSorted().join() !== key.grants.toSorted().join();
}

/** The roles and permissions that a key needs for what it has done. */
export function findSuggested({ suggestedRoles, suggestedPermissions }: ShownKey): string[] {
  return [...suggestedRoles, ...permissionsOf(suggestedPermissions)];
}

/** What a key loses if it keeps only what it has used. */
export function findLosses(key: ShownKey): ResourceActions[] {
  const lost = new Set(permissionsOf(key.excessPermissions));
  const kept = permissionsOf(key.effectivePermissions).filter((permission) => !lost.has(permission)) as Permission[];
  return groupPermissions(grantedTo(key).missingFrom(new PermissionSet(kept)));
}

/** Why the use of the key that the address names may not show all that it needs. @throws OperationFailed */
export async function askWarning(visit: Visit): Promise<string | undefined> {
  const counted = await askPeriods(visit, visit.now - LOOKED_BACK_DAYS * DAY_MS, 'DAY');
  const first = counted.find(({ accepted, forbidden }) => accepted + forbidden > 0);
  if (!first) return `It was not used in the last ${LOOKED_BACK_DAYS} days.`;
  if (Date.parse(first.start) > visit.now - TRUSTED_DAYS * DAY_MS)
    return (
      `It has been used for less than ${TRUSTED_DAYS} days. ` +
      'What it does once a week or once a month is missing from what it has used.'
    );
  return undefined;
}
