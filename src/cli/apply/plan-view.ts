import type { PlannedChanges } from '../../keys/apply/planned-changes.ts';
import type { PlannedChange } from '../../keys/key/field-changes.ts';
import { changeText, fieldText } from '../views/key-view.ts';

/** How many keys a plan creates, updates and deletes, and how many it leaves unchanged. */
export interface PlanCounts {
  created: number;
  updated: number;
  deleted: number;
  unchanged: number;
}

export function countsOf({ changes, unchanged }: PlannedChanges): PlanCounts {
  const count = (action: PlannedChange['action']) => changes.filter((change) => change.action === action).length;
  return { created: count('CREATE'), updated: count('UPDATE'), deleted: count('DELETE'), unchanged };
}

/** Changes as a diff: `+` for a new key, `~` for one that changes, `-` for one that is deleted. */
export function diffOf(changes: readonly PlannedChange[]): string[] {
  return changes.flatMap(({ action, name, changes: fields = [] }) => {
    if (action === 'DELETE') return [`- delete "${name}"`];
    if (action === 'UPDATE') return [`~ update "${name}"`, ...fields.map((change) => `    ${changeText(change)}`)];
    return [`+ create "${name}"`, ...fields.map(({ field, after }) => `    ${field}: ${fieldText(after)}`)];
  });
}
