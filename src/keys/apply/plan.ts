import type { ApiKey } from '../key/api-key.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { type DeclarationIssue, type DeclaredKey, assertValidDeclaration } from './declaration.ts';
import { KeysError } from '../errors.ts';
import { validateExpiry } from '../key/expiry.ts';
import {
  type Actor,
  OPERATOR,
  requireFor,
  requireToCreate,
  requireToHold,
  requireToOutlive,
} from '../authorization/principal.ts';
import { PermissionSet } from '../permissions/permission-set.ts';
import type { KeyFinder } from '../repository.ts';
import { listOf } from '../text.ts';
import { formatTime } from '../time.ts';

/** What has to change so that the keys are as they are declared. */
export interface Plan<Key extends ApiKey = ApiKey> {
  creates: DeclaredKey[];
  updates: { before: Key; after: Key }[];
  /** None before the key that created it. */
  deletes: Key[];
  /** How many declared keys are as they should be. */
  unchanged: number;
}

export interface PlanOptions {
  /** Whether keys that an apply made are deleted when they are declared no longer. */
  prune: boolean;
  /** Who asks. */
  caller: Actor;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  now: number;
}

/** Whether a plan changes anything. */
export function hasChanges({ creates, updates, deletes }: Plan): boolean {
  return creates.length + updates.length + deletes.length > 0;
}

/**
 * Compares declared keys with those that are there, by name. Nothing is written.
 * @throws DeclarationError for an end that cannot be set any more; KeysError PRUNE_REFUSED; ForbiddenError
 */
export async function planChanges<Key extends ApiKey>(
  find: KeyFinder<Key>,
  declared: readonly DeclaredKey[],
  { prune, caller, catalog, now }: PlanOptions,
): Promise<Plan<Key>> {
  const found = await find.findBy(
    'name',
    declared.map(({ name }) => name),
  );
  const existing = new Map(found.map((key) => [key.name, key]));
  const plan: Plan<Key> = { creates: [], updates: [], deletes: [], unchanged: 0 };
  const issues: DeclarationIssue[] = [];
  for (const [index, key] of declared.entries()) {
    const before = existing.get(key.name);
    if (key.expiresAt !== (before?.expiresAt ?? null))
      issues.push(...validateEnd(key, ['keys', index, 'expiresAt'], now));
    const after = before && asDeclared(before, key, now);
    if (!before || !after) plan.creates.push(key);
    else if (after === before) plan.unchanged += 1;
    else plan.updates.push({ before, after });
  }
  assertValidDeclaration(issues);
  if (prune) plan.deletes = await findUndeclared(find, new Set(declared.map(({ name }) => name)), caller);

  for (const key of plan.creates) requireToCreate(caller, key, catalog);
  // Also for those that stay as they are: who may not change a key must not find out in this way what it is.
  requireFor(caller, 'UPDATE', found);
  for (const { before, after } of plan.updates) requireToGive(caller, before, after, catalog);
  requireFor(caller, 'DELETE', plan.deletes);
  return plan;
}

/** A key as it is declared; the very same object where it is so already. */
function asDeclared<Key extends ApiKey>(before: Key, declared: DeclaredKey, now: number): Key {
  const { description, expiresAt, enabled } = declared;
  const roles = sameItems(before.roles, declared.roles) ? before.roles : declared.roles;
  const permissions = sameItems(before.permissions, declared.permissions) ? before.permissions : declared.permissions;
  const switched = enabled !== undefined && enabled !== (before.disabledAt === null);
  const disabledAt = switched ? (enabled ? null : now) : before.disabledAt;
  const after = { ...before, description, roles, permissions, expiresAt, disabledAt };
  const fields = ['description', 'roles', 'permissions', 'expiresAt', 'disabledAt'] as const;
  return fields.every((field) => before[field] === after[field]) ? before : after;
}

/** Whether two lists, in which nothing stands twice, hold the same. */
function sameItems(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item) => other.includes(item));
}

function validateEnd({ expiresAt }: DeclaredKey, path: DeclarationIssue['path'], now: number): DeclarationIssue[] {
  if (expiresAt === null) return [];
  return validateExpiry({ expiresAt: formatTime(expiresAt) }, now).map(({ message }) => ({
    path,
    message,
  }));
}

/** The keys that an apply made and that are declared no longer. @throws KeysError PRUNE_REFUSED where others would go with them */
async function findUndeclared<Key extends ApiKey>(
  find: KeyFinder<Key>,
  names: ReadonlySet<string>,
  caller: Actor,
): Promise<Key[]> {
  const undeclared = (await find.findManaged()).filter(({ name }) => !names.has(name));
  if (caller !== OPERATOR && undeclared.some(({ id }) => id === caller.key.id))
    throw new KeysError(
      'PRUNE_REFUSED',
      'To prune would delete the key that asks for it. Declare it, or apply without pruning.',
    );
  const named = new Set(undeclared.map(({ id }) => id));
  const leaving = await find.findWithDescendants([...named]);
  const others = leaving.filter(({ id }) => !named.has(id)).map(({ name }) => `"${name}"`);
  if (others.length === 0) return leaving;
  const shown = others.length > 5 ? [...others.slice(0, 5), `${others.length - 5} more`] : others;
  throw new KeysError(
    'PRUNE_REFUSED',
    `To prune would also delete keys that were not made by an apply, or are declared, because the pruned keys created them: ${listOf(shown)}. Delete those first, or declare the keys that created them.`,
  );
}

/** Refuses an actor that may not give a key what it is to get anew. */
function requireToGive(caller: Actor, before: ApiKey, after: ApiKey, catalog: Catalog): void {
  if (before.roles !== after.roles || before.permissions !== after.permissions)
    requireToHold(caller, PermissionSet.of(catalog, after));
  if (before.expiresAt !== after.expiresAt) requireToOutlive(caller, after.expiresAt);
}
