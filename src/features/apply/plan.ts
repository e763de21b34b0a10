import { formatTime } from '../../keys/basics/index.ts';
import type { ConfusableName } from '../../keys/changes/index.ts';
import {
  type ApiKey,
  type FieldChange,
  fieldChanges,
  givenFields,
  givenIn,
  type PlannedChange,
  secretSince,
} from '../../keys/key/index.ts';
import type { DeclaredKey } from './declaration.ts';

export interface ApplyRules {
  /** Delete keys that an earlier apply created and that are no longer declared. */
  prune: boolean;
  /** Takes over declared keys that another key created, which then have no creator. Only for the operator. */
  adopt: boolean;
}

/** The changes that bring the keys to their declared state. */
export interface Plan<Key extends ApiKey = ApiKey> {
  /** The keys to create, in the order of their declaration. */
  creates: DeclaredKey[];
  /** The keys to change. */
  updates: PlannedUpdate<Key>[];
  /** The keys to delete, each after the key that created it. */
  deletes: Key[];
  /** Number of declared keys without a change. */
  unchanged: number;
  /** The names of keys to create that look like others. */
  confusable: ConfusableName[];
  /** Keys with an old secret whose latest rotation still waits for the first use. */
  waiting: WaitingKey[];
}

/** A key to change. */
export interface PlannedUpdate<Key extends ApiKey = ApiKey> {
  /** ROTATE adds a secret beside the current one; RENEW replaces an expired one. */
  action: 'UPDATE' | 'ROTATE' | 'RENEW';
  /** Grace period of the current secret once the new one is used, in milliseconds. */
  grace: number;
  before: Key;
  /** With the secret that it has. */
  after: Key;
}

/** A key that is not rotated yet, as its new secret is not in use. */
export interface WaitingKey {
  name: string;
  /** Expiry of the previous secret in milliseconds since 1970; null until the new one is first used. */
  previousEndsAt: number | null;
}

/** A plan as it is shown. */
export interface PlannedChanges extends Pick<Plan, 'waiting' | 'unchanged' | 'confusable'> {
  changes: PlannedChange[];
}

/** A plan as it is shown. Once it is applied, `created` has the new keys in the order of `plan.creates`. */
export function plannedChanges(plan: Plan, created: readonly Pick<ApiKey, 'id'>[] = []): PlannedChanges {
  const { creates, updates, deletes, unchanged, confusable, waiting } = plan;
  const changes = [
    ...creates.map((key, index) => plannedCreation(key, created[index]?.id)),
    ...updates.map(({ action, before, after }): PlannedChange => ({
      action,
      name: after.name,
      id: after.id,
      ...(action === 'ROTATE' && { secretSince: secretSince(before) }),
      changes: fieldChanges(before, after),
    })),
    ...deletes.map(({ name, id }): PlannedChange => ({ action: 'DELETE', name, id })),
  ];
  return { changes, unchanged, confusable, waiting };
}

/** The creation of a declared key. @param id of the key, once there is one */
export function plannedCreation(key: DeclaredKey, id?: string): PlannedChange {
  return { action: 'CREATE', name: key.name, ...(id !== undefined && { id }), changes: fieldsOfNew(key) };
}

const { name: _name, ...fieldsBesideName } = givenFields;

function fieldsOfNew({ expiresAt, expiresIn, enabled, ...key }: DeclaredKey): FieldChange[] {
  const fields = {
    ...givenIn(fieldsBesideName, key),
    expiresAt: expiresIn === undefined ? formatTime(expiresAt) : null,
    expiresIn: expiresIn ?? null,
    enabled: enabled ?? null,
  };
  return Object.entries(fields)
    .filter(([, after]) => after !== null)
    .map(([field, after]) => ({ field: field as FieldChange['field'], before: null, after }));
}
