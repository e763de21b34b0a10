import type { ApiKey } from '../key/api-key.ts';
import { type ConfusableName, findConfusableNames } from '../changes/confusable-names.ts';
import type { AuditReader } from '../audit/audit-entry.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { refuseTakeover } from './takeover.ts';
import type { DocumentIssue } from '../document.ts';
import { type DeclaredKey, assertValidDeclaration } from './declaration.ts';
import { KeysError } from '../errors.ts';
import { validateExpiry } from '../key/expiry.ts';
import { type Chain, findChains } from '../authorization/chain.ts';
import { requireToChange, requireToCreate } from '../authorization/granting.ts';
import { requirePolicy, violationsByCount, violationsOfChange, violationsOfNew } from '../authorization/policy.ts';
import { type Actor, denied, mayFor, OPERATOR, requireFor } from '../authorization/principal.ts';
import { NO_LIMITS } from '../limit.ts';
import type { KeyFinder } from '../repository.ts';
import { listOf } from '../text.ts';
import { formatTime } from '../time.ts';
import { inTurns } from '../turns.ts';

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
  /** The names of keys to create that look like others. */
  confusable: ConfusableName[];
}

/** What a plan depends on besides the declaration. */
export interface PlanOptions {
  /** Delete keys that an apply created and that are no longer declared. */
  prune: boolean;
  /** Take over declared keys that another key created: they have no creator afterwards. For the operator. */
  adopt: boolean;
  /** Who applies the declaration. */
  caller: Actor;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  now: number;
  /** Tells who gave a key its name. */
  auditLog: AuditReader;
}

/** Whether a plan changes anything. */
export function hasChanges({ creates, updates, deletes }: Plan): boolean {
  return creates.length + updates.length + deletes.length > 0;
}

/**
 * Compares declared keys with the existing ones, by name. Writes nothing.
 * @throws DeclarationError for an expiry that can no longer be set; KeysError PRUNE_REFUSED,
 * TAKEOVER_REFUSED, NAME_CONFUSABLE, POLICY_VIOLATED; ForbiddenError
 */
export async function planChanges<Key extends ApiKey>(
  find: KeyFinder<Key>,
  declared: readonly DeclaredKey[],
  { prune, adopt, caller, catalog, now, auditLog }: PlanOptions,
): Promise<Plan<Key>> {
  const found = await find.findBy(
    'name',
    declared.map(({ name }) => name),
  );
  const existing = new Map(found.map((key) => [key.name, key]));
  const plan: Plan<Key> = { creates: [], updates: [], deletes: [], unchanged: 0, confusable: [] };
  const issues: DocumentIssue[] = [];
  for await (const [index, key] of inTurns(declared.entries())) {
    const before = existing.get(key.name);
    if (key.expiresAt !== (before?.expiresAt ?? null))
      issues.push(...validateDeclaredExpiry(key, ['keys', index, 'expiresAt'], now));
    if (!before) {
      plan.creates.push(key);
      continue;
    }
    const after = asDeclared(before, key, { adopt, now });
    if (after === before) plan.unchanged += 1;
    else plan.updates.push({ before, after });
  }
  assertValidDeclaration(issues);
  if (prune) plan.deletes = await findUndeclared(find, new Set(declared.map(({ name }) => name)), caller);

  for await (const key of inTurns(plan.creates)) requireToCreate(caller, key, catalog);
  // Unchanged keys included: a caller that may not change a key must not probe it by declaring guesses.
  requireFor(caller, 'UPDATE', found);
  if (adopt && caller !== OPERATOR) throw denied(caller, 'Only the operator adopts keys.');
  if (!adopt) await refuseTakeover({ find, auditLog, caller, catalog }, found, plan.updates);
  const befores = plan.updates.map(({ before }) => before);
  const chains = await findChains(find, befores);
  for await (const [index, { after }] of inTurns(plan.updates.entries()))
    requireToChange(caller, chains[index]!, after, catalog);
  requireFor(caller, 'DELETE', plan.deletes);
  // The plan names them.
  requireFor(caller, 'READ', plan.deletes);
  requirePolicy(await violationsOf(plan, chains, find, { caller, catalog, now }));
  const created = plan.creates.map(({ name }) => name);
  plan.confusable = await findConfusableNames(caller, find, created, new Set(plan.deletes.map(({ id }) => id)));
  return plan;
}

/** What the policy has against a plan. */
async function violationsOf(
  { creates, updates, deletes }: Plan,
  chains: readonly Chain[],
  find: KeyFinder,
  { caller, catalog, now }: Pick<PlanOptions, 'caller' | 'catalog' | 'now'>,
): Promise<string[]> {
  const place = { caller, catalog, now };
  const createdBy = caller === OPERATOR ? null : caller.apiKey.id;
  const violations: string[] = [];
  for await (const key of inTurns(creates)) violations.push(...violationsOfNew(key, place));
  for await (const [index, { after }] of inTurns(updates.entries()))
    violations.push(...violationsOfChange(chains[index]!, after, place));
  const created = creates.map((key) => ({ ...key, createdBy, disabledAt: key.enabled === false ? now : null }));
  const added = [...created, ...updates.map(({ after }) => after)];
  const removed = [...deletes, ...updates.map(({ before }) => before)];
  return [...violations, ...(await violationsByCount(find, { added, removed }, place))];
}

/** The key as declared; the same object if nothing changes. */
function asDeclared<Key extends ApiKey>(
  before: Key,
  declared: DeclaredKey,
  { adopt, now }: { adopt: boolean; now: number },
): Key {
  const { description, expiresAt, enabled } = declared;
  const roles = sameItems(before.roles, declared.roles) ? before.roles : declared.roles;
  const permissions = sameItems(before.permissions, declared.permissions) ? before.permissions : declared.permissions;
  const toggled = enabled !== undefined && enabled !== (before.disabledAt === null);
  const disabledAt = toggled ? (enabled ? null : now) : before.disabledAt;
  const createdBy = adopt ? null : before.createdBy;
  const { limits: newLimits = NO_LIMITS, allowFrom: networks = null } = declared;
  const limits = sameItems(before.limits, newLimits) ? before.limits : newLimits;
  const allowFrom = sameItems(before.allowFrom, networks) ? before.allowFrom : networks;
  const after = { ...before, description, roles, permissions, limits, allowFrom, expiresAt, disabledAt, createdBy };
  return (Object.keys(after) as (keyof Key)[]).every((field) => before[field] === after[field]) ? before : after;
}

/** Whether two lists without duplicates hold the same items, or neither is there. */
function sameItems(one: readonly string[] | null, other: readonly string[] | null): boolean {
  if (one === null || other === null) return one === other;
  return one.length === other.length && one.every((item) => other.includes(item));
}

function validateDeclaredExpiry({ expiresAt }: DeclaredKey, path: DocumentIssue['path'], now: number): DocumentIssue[] {
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
  if (caller !== OPERATOR && undeclared.some(({ id }) => id === caller.apiKey.id))
    throw new KeysError(
      'PRUNE_REFUSED',
      'Pruning would delete the key that requests it. Declare it, or apply without pruning.',
    );
  const undeclaredIds = new Set(undeclared.map(({ id }) => id));
  const family = await find.findWithDescendants([...undeclaredIds]);
  const others = family.filter(({ id }) => !undeclaredIds.has(id));
  if (others.length === 0) return family;
  const readable = others.filter((key) => mayFor(caller, 'READ', key));
  const shown = readable.slice(0, 5).map(({ name }) => `"${name}"`);
  const rest = others.length - shown.length;
  if (rest > 0) shown.push(shown.length > 0 ? `${rest} more` : `${rest} ${rest === 1 ? 'key' : 'keys'}`);
  throw new KeysError(
    'PRUNE_REFUSED',
    'Pruning would also delete keys that are declared or that no apply created, because pruned keys created them: ' +
      `${listOf(shown)}. Delete those first, or declare the keys that created them.`,
  );
}
