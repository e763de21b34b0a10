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

/** The changes that bring the keys to their declared state. */
export interface Plan<Key extends ApiKey = ApiKey> {
  /** The keys to create, in the order of their declaration. */
  creates: DeclaredKey[];
  /** The keys to change. */
  updates: { before: Key; after: Key }[];
  /** The keys to delete, each after the key that created it. */
  deletes: Key[];
  /** How many declared keys need no change. */
  unchanged: number;
}

/** What a plan depends on besides the declaration. */
export interface PlanOptions {
  /** Delete keys that an apply created and that are no longer declared. */
  prune: boolean;
  /** Who applies the declaration. */
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
 * Compares declared keys with the existing ones, by name. Writes nothing.
 * @throws DeclarationError for an expiry that can no longer be set; KeysError PRUNE_REFUSED; ForbiddenError
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
      issues.push(...validateDeclaredExpiry(key, ['keys', index, 'expiresAt'], now));
    const after = before && asDeclared(before, key, now);
    if (!before || !after) plan.creates.push(key);
    else if (after === before) plan.unchanged += 1;
    else plan.updates.push({ before, after });
  }
  assertValidDeclaration(issues);
  if (prune) plan.deletes = await findUndeclared(find, new Set(declared.map(({ name }) => name)), caller);

  for (const key of plan.creates) requireToCreate(caller, key, catalog);
  // Unchanged keys included: a caller that may not change a key must not probe it by declaring guesses.
  requireFor(caller, 'UPDATE', found);
  for (const { before, after } of plan.updates) requireToChange(caller, before, after, catalog);
  requireFor(caller, 'DELETE', plan.deletes);
  return plan;
}

/** The key as declared; the same object if nothing changes. */
function asDeclared<Key extends ApiKey>(before: Key, declared: DeclaredKey, now: number): Key {
  const { description, expiresAt, enabled } = declared;
  const roles = sameItems(before.roles, declared.roles) ? before.roles : declared.roles;
  const permissions = sameItems(before.permissions, declared.permissions) ? before.permissions : declared.permissions;
  const toggled = enabled !== undefined && enabled !== (before.disabledAt === null);
  const disabledAt = toggled ? (enabled ? null : now) : before.disabledAt;
  const after = { ...before, description, roles, permissions, expiresAt, disabledAt };
  const fields = ['description', 'roles', 'permissions', 'expiresAt', 'disabledAt'] as const;
  return fields.every((field) => before[field] === after[field]) ? before : after;
}

/** Whether two lists without duplicates hold the same items. */
function sameItems(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item) => other.includes(item));
}

function validateDeclaredExpiry(
  { expiresAt }: DeclaredKey,
  path: DeclarationIssue['path'],
  now: number,
): DeclarationIssue[] {
  if (expiresAt === null) return [];
  return validateExpiry({ expiresAt: formatTime(expiresAt) }, now).map(({ message }) => ({ path, message }));
}

/**
 * The keys that an apply created and that are no longer declared.
 * @throws KeysError PRUNE_REFUSED if deleting them would delete other keys
 */
async function findUndeclared<Key extends ApiKey>(
  find: KeyFinder<Key>,
  names: ReadonlySet<string>,
  caller: Actor,
): Promise<Key[]> {
  const undeclared = (await find.findManaged()).filter(({ name }) => !names.has(name));
  if (caller !== OPERATOR && undeclared.some(({ id }) => id === caller.key.id))
    throw new KeysError(
      'PRUNE_REFUSED',
      'Pruning would delete the key that requests it. Declare it, or apply without pruning.',
    );
  const undeclaredIds = new Set(undeclared.map(({ id }) => id));
  const family = await find.findWithDescendants([...undeclaredIds]);
  const others = family.filter(({ id }) => !undeclaredIds.has(id)).map(({ name }) => `"${name}"`);
  if (others.length === 0) return family;
  const shown = others.length > 5 ? [...others.slice(0, 5), `${others.length - 5} more`] : others;
  throw new KeysError(
    'PRUNE_REFUSED',
    'Pruning would also delete keys that are declared or that no apply created, because pruned keys created them: ' +
      `${listOf(shown)}. Delete those first, or declare the keys that created them.`,
  );
}

/** Refuses a caller that would grant a key more than the caller holds. */
function requireToChange(caller: Actor, before: ApiKey, after: ApiKey, catalog: Catalog): void {
  if (before.roles !== after.roles || before.permissions !== after.permissions)
    requireToHold(caller, PermissionSet.of(catalog, after));
  if (before.expiresAt !== after.expiresAt) requireToOutlive(caller, after.expiresAt);
}
