import type { ApiKey } from '../../keys/key/api-key.ts';
import type { DeclaredKey } from '../../keys/apply/declaration.ts';
import type { Plan } from '../../keys/apply/plan.ts';
import { fieldChanges, type FieldChange, fieldText, changeText } from '../views/key-view.ts';
import { formatTime } from '../../keys/time.ts';

/** One change of a plan, as in the JSON of `apply`. A key that does not exist yet has no id. */
export interface PlannedChange {
  action: 'CREATE' | 'UPDATE' | 'DELETE';
  name: string;
  id?: string;
  /** The fields of a new key that are set, or the fields of an existing key that change. */
  changes?: FieldChange[];
}

/** How many keys a plan creates, updates and deletes, and how many it leaves unchanged. */
export interface PlanCounts {
  created: number;
  updated: number;
  deleted: number;
  unchanged: number;
}

export function countsOf({ creates, updates, deletes, unchanged }: Plan): PlanCounts {
  return { created: creates.length, updated: updates.length, deleted: deletes.length, unchanged };
}

/** The changes of a plan. Once it is applied, `created` has the new keys in the order of `plan.creates`. */
export function plannedChanges({ creates, updates, deletes }: Plan, created: readonly ApiKey[] = []): PlannedChange[] {
  return [
    ...creates.map((key, index): PlannedChange => {
      const id = created[index]?.id;
      return { action: 'CREATE', name: key.name, ...(id !== undefined && { id }), changes: fieldsOfNew(key) };
    }),
    ...updates.map(({ before, after }): PlannedChange => ({
      action: 'UPDATE',
      name: after.name,
      id: after.id,
      changes: fieldChanges(before, after),
    })),
    ...deletes.map(({ name, id }): PlannedChange => ({ action: 'DELETE', name, id })),
  ];
}

/** Changes as a diff: `+` for a new key, `~` for one that changes, `-` for one that is deleted. */
export function diffOf(changes: readonly PlannedChange[]): string[] {
  return changes.flatMap(({ action, name, changes: fields = [] }) => {
    if (action === 'DELETE') return [`- delete "${name}"`];
    if (action === 'UPDATE') return [`~ update "${name}"`, ...fields.map((change) => `    ${changeText(change)}`)];
    return [`+ create "${name}"`, ...fields.map(({ field, after }) => `    ${field}: ${fieldText(after)}`)];
  });
}

function fieldsOfNew({
  description,
  roles,
  permissions,
  limits = [],
  allowFrom = null,
  expiresAt,
  enabled,
}: DeclaredKey): FieldChange[] {
  const fields = {
    description,
    roles: roles.length > 0 ? roles : null,
    permissions: permissions.length > 0 ? permissions : null,
    limits: limits.length > 0 ? limits : null,
    allowFrom,
    expiresAt: formatTime(expiresAt),
    enabled: enabled ?? null,
  };
  return Object.entries(fields)
    .filter(([, after]) => after !== null)
    .map(([field, after]) => ({ field: field as FieldChange['field'], before: null, after }));
}
