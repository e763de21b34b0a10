import type { ConfusableName } from '../changes/confusable-names.ts';
import type { ApiKey } from '../key/api-key.ts';
import { type FieldChange, fieldChanges, type PlannedChange } from '../key/field-changes.ts';
import { formatTime } from '../time.ts';
import type { DeclaredKey } from './declaration.ts';
import type { Plan } from './plan.ts';

/** A plan as it is shown. */
export interface PlannedChanges {
  changes: PlannedChange[];
  /** How many declared keys need no change. */
  unchanged: number;
  /** The names of keys to create that look like others. */
  confusable: ConfusableName[];
}

/** A plan as it is shown. Once it is applied, `created` has the new keys in the order of `plan.creates`. */
export function plannedChanges(plan: Plan, created: readonly Pick<ApiKey, 'id'>[] = []): PlannedChanges {
  const { creates, updates, deletes, unchanged, confusable } = plan;
  const changes = [
    ...creates.map((key, index) => plannedCreation(key, created[index]?.id)),
    ...updates.map(({ before, after }): PlannedChange => ({
      action: 'UPDATE',
      name: after.name,
      id: after.id,
      changes: fieldChanges(before, after),
    })),
    ...deletes.map(({ name, id }): PlannedChange => ({ action: 'DELETE', name, id })),
  ];
  return { changes, unchanged, confusable };
}

/** The creation of a declared key. @param id of the key, once there is one */
export function plannedCreation(key: DeclaredKey, id?: string): PlannedChange {
  return { action: 'CREATE', name: key.name, ...(id !== undefined && { id }), changes: fieldsOfNew(key) };
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
