import { isDeepStrictEqual } from 'node:util';
import { auditChange, type AuditedChange, type AuditReader } from '../../keys/audit/index.ts';
import {
  type Actor,
  denied,
  findChains,
  isWidened,
  mayFor,
  OPERATOR,
  requireFor,
  requirePolicy,
  requireToChange,
  requireToCreate,
  requireToHoldKey,
  violationsByCount,
  violationsOfChange,
  violationsOfNew,
} from '../../keys/authorization/index.ts';
import {
  assertValid,
  type DocumentIssue,
  formatTime,
  readDuration,
  yielding,
  KeysError,
  formatList,
  mapYielding,
  withoutUndefined,
} from '../../keys/basics/index.ts';
import {
  findConfusableNames,
  findUnused,
  type KeyStep,
  type NewSecret,
  type Parts,
  type Place,
  rotatedKey,
  type SecretDelivery,
  type Transaction,
  requireUnrefused,
} from '../../keys/changes/index.ts';
import {
  type ApiKey,
  BARE_KEY,
  finishedKey,
  GIVEN_FIELDS,
  isNone,
  NOTHING_GIVEN,
  removalIssues,
  secretSince,
  type StoredKey,
  validateExpiry,
  withoutDigests,
} from '../../keys/key/index.ts';
import type { KeyFinder } from '../../keys/repository/index.ts';
import { createSecret, isSecretlessId, type Secret } from '../../keys/secret/index.ts';
import { assertValidDeclaration, type DeclaredKey } from './declaration.ts';
import { readSchedule } from './rotation-schedule.ts';
import { type ApplyRules, type Plan, type PlannedChanges, plannedChanges, type PlannedUpdate } from './plan.ts';

/** Differences between keys and their declarations. */
interface Differences<Key extends ApiKey = ApiKey> extends Pick<
  Plan<Key>,
  'creates' | 'updates' | 'deletes' | 'waiting'
> {
  existing: Key[];
}

/** Parts that decide about the changes of an apply. */
interface ApplyPlace<Key extends ApiKey = ApiKey> extends Place<Key> {
  /** Tells who gave a key its name. */
  readonly auditLog: AuditReader;
}

function applyPlaceOf({ repository, catalog, clock, listeners }: Parts, caller: Actor): ApplyPlace {
  return { caller, catalog, now: clock(), find: repository, listeners, auditLog: repository.auditLog };
}

/** Changes of an apply, with data only for the rules. */
interface AppliedChanges {
  plan: Plan<StoredKey>;
  created: { secret: Secret; key: StoredKey }[];
  rotated: { secret: Secret; key: StoredKey }[];
}

/** Changes of an apply. */
export interface AppliedKeys {
  plan: Plan;
  /** The new keys with their secrets, in the order of their declarations. */
  created: NewSecret[];
  /** Rotated or renewed keys, with their new secrets. */
  rotated: NewSecret[];
}

/** Keys to look up at once when one difference is enough. */
const PIECE_KEYS = 100;
const BATCH_KEYS = 500;
const BATCH_ENTRIES = 500;

function withoutDigestsIn({ plan, created, rotated }: AppliedChanges): AppliedKeys {
  const updates = plan.updates.map(({ before, after, ...change }) => ({
    ...change,
    before: withoutDigests(before),
    after: withoutDigests(after),
  }));
  const shown = (made: AppliedChanges['created']) =>
    made.map(({ secret, key }): NewSecret => ({ key: secret.text, apiKey: withoutDigests(key) }));
  return {
    plan: { ...plan, updates, deletes: plan.deletes.map(withoutDigests) },
    created: shown(created),
    rotated: shown(rotated),
  };
}

/** Applies a declaration. @throws what `planChanges` throws */
async function applyDeclaration(
  transaction: Transaction,
  declared: readonly DeclaredKey[],
  { newSecret, newId, ...rules }: ApplyRules & { newSecret: () => Secret; newId: () => string },
): Promise<AppliedChanges> {
  const { now } = transaction;
  const plan = await planChanges(transaction, declared, rules);
  const created = await mapYielding(plan.creates, (key) => {
    const secret = newSecret();
    return { secret, key: buildDeclaredKey(key, secret, newId(), transaction) };
  });
  const rotated: AppliedChanges['rotated'] = [];
  const changes = await mapYielding(plan.updates, ({ action, grace, before, after }) => {
    if (action === 'UPDATE') return { before, steps: stepsTo(before, after) };
    const secret = newSecret();
    const single = finishedKey(before, now);
    const { rotation, previousDigest } = single;
    const changed = { ...after, rotation, previousDigest };
    const key =
      action === 'ROTATE'
        ? rotatedKey(changed, secret, { now, grace, previousEndsAt: null })
        : { ...rotatedKey(changed, secret, { now, grace: 0, previousEndsAt: now }), previousDigest: null };
    rotated.push({ secret, key });
    const finish: KeyStep = { action: 'ROTATE_FINISH', after: single };
    return { before, steps: [finish, ...stepsTo(single, changed), { action: 'ROTATE' as const, after: key }] };
  });
  await transaction.insert(created.map(({ key }) => key));
  await transaction.changeAll(changes);
  await transaction.delete(plan.deletes);
  return { plan, created, rotated };
}

/** Reverts an apply, except for keys changed since. */
async function revertApply(transaction: Transaction, { plan, created, rotated }: AppliedChanges): Promise<void> {
  const { find, now } = transaction;
  await transaction.delete(await find.findWithDescendants(created.map(({ key }) => key.id)));
  const renewed = new Map(rotated.map(({ key }) => [key.id, key]));
  for (const { before, after } of plan.updates) {
    const made = renewed.get(after.id) ?? after;
    const current = await find.findById(after.id);
    if (!current || Object.keys(auditChange(made, current).after).length > 0) continue;
    await (made === after
      ? transaction.change(current, before, 'UPDATE')
      : transaction.change(current, finishedKey(before, now), 'ROTATE_ROLLBACK'));
  }
  const deletedNames = plan.deletes.map(({ name }) => name);
  const taken = new Set((await find.findBy('name', deletedNames)).map(({ name }) => name));
  for (const key of plan.deletes) {
    const orphan = key.createdBy !== null && !(await find.findById(key.createdBy));
    if (!taken.has(key.name) && !orphan) await transaction.insert([key]);
  }
}

/** An audit entry for each command that would make the same change. */
function stepsTo(before: StoredKey, after: StoredKey): KeyStep[] {
  const steps: KeyStep[] = [];
  if (after.createdBy !== before.createdBy)
    steps.push({ action: 'ADOPT', after: { ...before, createdBy: after.createdBy } });
  if (after.disabledAt === before.disabledAt) return [...steps, { action: 'UPDATE', after }];
  steps.push({ action: 'UPDATE', after: { ...after, disabledAt: before.disabledAt } });
  return [...steps, { action: after.disabledAt === null ? 'ENABLE' : 'DISABLE', after }];
}

function buildDeclaredKey(
  { enabled, expiresIn: _expiresIn, rotate: _rotate, ...declared }: DeclaredKey,
  secret: Secret,
  id: string,
  { caller, now }: Transaction,
): StoredKey {
  return {
    ...BARE_KEY,
    ...declared,
    id,
    publicId: secret.publicId,
    createdAt: now,
    createdBy: caller === OPERATOR ? null : caller.apiKey.id,
    disabledAt: enabled === false ? now : null,
    managed: true,
    digest: secret.digest,
  };
}

/** Checks for any difference. */
function hasChanges({ creates, updates, deletes }: Pick<Plan, 'creates' | 'updates' | 'deletes'>): boolean {
  return creates.length + updates.length + deletes.length > 0;
}

/**
 * Compares declared keys with the existing ones, by name, and decides on the changes. Writes nothing.
 * @throws what `findDifferences` and `decideChanges` throw
 */
async function planChanges<Key extends ApiKey>(
  place: ApplyPlace<Key>,
  declared: readonly DeclaredKey[],
  rules: ApplyRules,
): Promise<Plan<Key>> {
  return decideChanges(place, await findDifferences(place, declared, rules), rules);
}

/**
 * Compares declared keys with the existing ones, by name.
 * @param upToFirst stops at the first difference
 * @throws DeclarationError for an expiry that can no longer be set; KeysError PRUNE_REFUSED
 */
async function findDifferences<Key extends ApiKey>(
  { find, caller, now }: Pick<ApplyPlace<Key>, 'find' | 'caller' | 'now'>,
  declared: readonly DeclaredKey[],
  { prune, adopt }: ApplyRules,
  { upToFirst = false }: { upToFirst?: boolean } = {},
): Promise<Differences<Key>> {
  const differences: Differences<Key> = { creates: [], updates: [], deletes: [], existing: [], waiting: [] };
  const names = declared.map(({ name }) => name);
  const issues: DocumentIssue[] = [];
  const found = new Map<string, Key>();
  const size = upToFirst ? PIECE_KEYS : declared.length;
  for await (const [index, key] of yielding(declared.entries())) {
    if (index % size === 0)
      for (const each of await find.findBy('name', names.slice(index, index + size))) found.set(each.name, each);
    const before = found.get(key.name);
    if (key.expiresIn === undefined && key.expiresAt !== (before?.expiresAt ?? null))
      issues.push(...validateDeclaredExpiry(key, ['keys', index, 'expiresAt'], now));
    if (!before) differences.creates.push({ ...key, expiresAt: endOf(key, now) });
    else {
      differences.existing.push(before);
      const due = dueOf(before, key, now);
      const waiting = due?.action === 'ROTATE' ? await findUnused(find, before, now) : null;
      if (waiting) differences.waiting.push({ name: before.name, previousEndsAt: waiting.previousEndsAt });
      const change = waiting || !due ? NO_SECRET : due;
      const after = asDeclared(before, key, { adopt, now, renews: change.action !== 'UPDATE' });
      if (after !== before || change.action !== 'UPDATE') differences.updates.push({ ...change, before, after });
    }
    if (upToFirst && hasChanges(differences)) return differences;
  }
  assertValidDeclaration(issues);
  if (prune) differences.deletes = await findUndeclared(find, new Set(names), caller);
  return differences;
}

/**
 * Checks whether the caller is allowed to make the changes.
 * @throws KeysError TAKEOVER_REFUSED, NAME_CONFUSABLE, POLICY_VIOLATED, NOT_FOR_PEOPLE; ForbiddenError
 */
async function decideChanges<Key extends ApiKey>(
  place: ApplyPlace<Key>,
  { creates, updates, deletes, existing, waiting }: Differences<Key>,
  { adopt }: ApplyRules,
): Promise<Plan<Key>> {
  const { caller, catalog, find } = place;
  const violations: string[] = [];
  for await (const key of yielding(creates)) {
    requireToCreate(caller, key, catalog);
    violations.push(...violationsOfNew(key, place));
  }
  // Also for unchanged keys: a caller without permission must not probe a key by declaring guesses.
  requireFor(caller, 'UPDATE', existing);
  // A declared key has a secret, so that one without is refused even if nothing differs.
  for (const key of existing) if (isSecretlessId(key.publicId)) await requireUnrefused(place, key);
  if (adopt && caller !== OPERATOR) throw denied(caller, 'Only the operator can adopt keys.');
  if (!adopt) await refuseTakeover(place, existing, updates);
  const befores = updates.map(({ before }) => before);
  const chains = await findChains(find, befores);
  for await (const [index, { action, before, after }] of yielding(updates.entries())) {
    const fields = GIVEN_FIELDS.filter((field) => before[field] !== after[field]);
    const kept = GIVEN_FIELDS.filter((field) => !isNone(before[field]));
    assertValid(removalIssues(before, Object.fromEntries(kept.map((field) => [field, after[field]]))));
    if (fields.length > 0) await requireUnrefused(place, before, fields);
    if (action !== 'UPDATE') await requireUnrefused(place, before);
    requireToChange(caller, chains[index]!, after, catalog);
    if (action !== 'UPDATE') requireToHoldKey(caller, chains[index]!, after, catalog);
    violations.push(...violationsOfChange(chains[index]!, after, place));
  }
  const why = 'Pruning would delete all undeclared keys of the store that an apply has created: ';
  requireFor(caller, 'DELETE', deletes, why);
  // The plan names them.
  requireFor(caller, 'READ', deletes, why);
  const createdBy = caller === OPERATOR ? null : caller.apiKey.id;
  const created = creates.map((key) => ({ ...key, createdBy, disabledAt: key.enabled === false ? place.now : null }));
  const added = [...created, ...updates.map(({ after }) => after)];
  requirePolicy([
    ...violations,
    ...(await violationsByCount(find, { added, removed: [...deletes, ...befores] }, place)),
  ]);
  const names = creates.map(({ name }) => name);
  const confusable = await findConfusableNames(caller, find, names, new Set(deletes.map(({ id }) => id)));
  return { creates, updates, deletes, unchanged: existing.length - updates.length, confusable, waiting };
}

/**
 * Refuses to take over a key that another key prepared. A file grants by name: the holder of a secret of a key with that
 * name gets its grants. So the key must not have been created by another key, which knows the secret, and the file must
 * not widen a key that got its name from a key, even from itself.
 * @throws KeysError TAKEOVER_REFUSED
 */
async function refuseTakeover(
  place: ApplyPlace,
  existing: readonly ApiKey[],
  updates: Differences['updates'],
): Promise<void> {
  const { caller, catalog, auditLog } = place;
  const callerId = caller === OPERATOR ? null : caller.apiKey.id;
  const foreign = existing.find(({ id, createdBy }) => createdBy !== null && createdBy !== callerId && id !== callerId);
  if (foreign) throw await refusal(place, foreign, 'was created by', foreign.createdBy!);
  const widened: ApiKey[] = [];
  for await (const { before, after } of yielding(updates)) if (isWidened(before, after, catalog)) widened.push(before);
  const namers = await findNamers(
    auditLog,
    widened.map(({ id }) => id),
  );
  for (const key of widened) {
    const namer = namers.get(key.id);
    if (namer !== undefined && namer !== callerId) throw await refusal(place, key, 'got its name from', namer);
  }
}

/** The ids of the keys that gave keys their names, unless the operator has changed these since, and so knows them. */
async function findNamers(auditLog: AuditReader, ids: readonly string[]): Promise<Map<string, string>> {
  const namers = new Map<string, string>();
  for (let at = 0; at < ids.length; at += BATCH_KEYS) {
    const open = new Set(ids.slice(at, at + BATCH_KEYS));
    for (let before: number | undefined; open.size > 0;) {
      const page = { order: 'newest', limit: BATCH_ENTRIES, before } as const;
      const changes: AuditedChange[] = await auditLog.findChanges([...open], page);
      for (const { apiKey, actor, after } of changes) {
        const id = apiKey!.id;
        // A policy acts automatically, so no person has checked the key.
        if (!open.has(id) || actor.kind === 'POLICY') continue;
        const gaveName = actor.kind === 'KEY' && after !== null && 'name' in after;
        if (gaveName && actor.id !== null) namers.set(id, actor.id);
        if (gaveName || actor.kind !== 'KEY') open.delete(id);
      }
      if (changes.length < BATCH_ENTRIES) break;
      before = changes.at(-1)!.number;
    }
  }
  return namers;
}

async function refusal({ find, caller }: ApplyPlace, { name }: ApiKey, how: string, byId: string): Promise<KeysError> {
  const other = await find.findById(byId);
  const by = other && mayFor(caller, 'READ', other) ? `"${other.name}"` : 'another key';
  const remedy =
    caller === OPERATOR
      ? 'Delete it, or pass --adopt to take it over with its current secret.'
      : 'Choose another name.';
  return new KeysError('TAKEOVER_REFUSED', `The API key "${name}" ${how} ${by}. ${remedy}`);
}

const NO_SECRET = { action: 'UPDATE', grace: 0 } as const;

/**
 * Decides whether a declared key gets another secret: if it has expired by age, or its secret is too old. A disabled
 * key gets none.
 */
function dueOf(
  before: ApiKey,
  { enabled, expiresIn, rotate }: DeclaredKey,
  now: number,
): Pick<PlannedUpdate, 'action' | 'grace'> | undefined {
  if (!(enabled ?? before.disabledAt === null)) return undefined;
  const isExpired = before.expiresAt !== null && before.expiresAt <= now;
  if (isExpired) return expiresIn === undefined ? undefined : { action: 'RENEW', grace: 0 };
  if (!rotate) return undefined;
  const { every, grace } = readSchedule(rotate);
  return now - secretSince(before) < every ? undefined : { action: 'ROTATE', grace };
}

/** The expiry of a key that gets a secret now. */
function endOf({ expiresIn, expiresAt }: DeclaredKey, now: number): number | null {
  return expiresIn === undefined ? expiresAt : now + readDuration(expiresIn)!;
}

/** The expiry of a key that keeps its secret. One that may live longer than a new key is shortened to that. */
function endOfPresent(before: ApiKey, declared: DeclaredKey, now: number): number | null {
  const end = endOf(declared, secretSince(before));
  const latest = endOf(declared, now);
  if (latest === null || end === null || declared.expiresIn === undefined || end > now) return end;
  return before.expiresAt !== null && before.expiresAt <= latest ? before.expiresAt : latest;
}

/** The key as declared; the same object if nothing changes. @param renews whether it gets another secret */
function asDeclared<Key extends ApiKey>(
  before: Key,
  declared: DeclaredKey,
  { adopt, now, renews }: { adopt: boolean; now: number; renews: boolean },
): Key {
  const { enabled } = declared;
  const toggled = enabled !== undefined && enabled !== (before.disabledAt === null);
  const disabledAt = toggled ? (enabled ? null : now) : before.disabledAt;
  const createdBy = adopt ? null : before.createdBy;
  const expiresAt = renews ? endOf(declared, now) : endOfPresent(before, declared, now);
  const wanted = { ...NOTHING_GIVEN, ...withoutUndefined(declared), expiresAt };
  const changed = GIVEN_FIELDS.filter((field) => !isSame(before[field], wanted[field]));
  const after = {
    ...before,
    ...Object.fromEntries(changed.map((field) => [field, wanted[field]])),
    disabledAt,
    createdBy,
  };
  return (Object.keys(after) as (keyof Key)[]).every((field) => before[field] === after[field]) ? before : after;
}

/** True for values that are the same, and lists without duplicates in whatever order. */
function isSame(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return isDeepStrictEqual(one, other);
  return one.length === other.length && one.every((item, index) => item === other[index] || other.includes(item));
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
      `${formatList(shown)}. Delete those first, or declare the keys that created them.`,
  );
}

/** Options of an apply. */
export interface ApplyOptions extends Partial<ApplyRules> {
  delivery?: SecretDelivery<AppliedKeys>;
}

/** Brings keys to their declared state. */
export class Declarations {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * Finds what `apply` would change now, without writing.
   * @throws DeclarationError; KeysError PRUNE_REFUSED; ForbiddenError; a STORE_ error
   */
  async plan(
    declared: readonly DeclaredKey[],
    { prune = false, adopt = false }: Partial<ApplyRules>,
    actor: Actor,
  ): Promise<Plan> {
    const rules = { prune, adopt };
    const place = applyPlaceOf(this.#options, actor);
    const head = await place.auditLog.head();
    try {
      return await planChanges(place, declared, rules);
    } catch (error) {
      // Another process can have changed keys between two looks at them.
      if ((await place.auditLog.head())?.number === head?.number) throw error;
      return planChanges(place, declared, rules);
    }
  }

  /**
   * Brings keys to their declared state in one transaction. Writes nothing if nothing differs.
   * @throws DeclarationError; ValidationError; KeysError PRUNE_REFUSED; ForbiddenError; a STORE_ error;
   *   what `delivery` throws
   */
  async apply(
    declared: readonly DeclaredKey[],
    { prune = false, adopt = false, delivery }: ApplyOptions,
    actor: Actor,
  ): Promise<AppliedKeys> {
    const { randomBytes, randomId, transactions } = this.#options;
    const rules = { prune, adopt };
    const place = applyPlaceOf(this.#options, actor);
    const found = await findDifferences(place, declared, rules, { upToFirst: true });
    if (!hasChanges(found)) return { plan: await decideChanges(place, found, rules), created: [], rotated: [] };
    const newSecret = () => createSecret(randomBytes, this.#options.catalog.prefix);
    return transactions.runWithSecrets(
      actor,
      {
        run: (transaction) => applyDeclaration(transaction, declared, { ...rules, newSecret, newId: randomId }),
        present: withoutDigestsIn,
        revert: revertApply,
      },
      { delivery },
    );
  }
}

/** An apply, as callers get it. */
export interface Applied extends PlannedChanges {
  /** The new keys with their secrets, in the order of their declarations. */
  readonly created: readonly AppliedSecret[];
  /** Rotated or renewed keys, with their new secrets. */
  readonly rotated: readonly AppliedSecret[];
  /** Only where the store is. */
  readonly whole?: AppliedKeys;
}

interface AppliedSecret {
  readonly key: string;
  readonly apiKey: Pick<ApiKey, 'id' | 'name'>;
}

/** The same for callers. */
export function appliedAs(whole: AppliedKeys): Applied {
  const { plan, created, rotated } = whole;
  const added = created.map(({ apiKey }) => apiKey);
  return { ...plannedChanges(plan, added), created, rotated, whole };
}

/** The input of an apply. */
export interface ApplyInput {
  readonly declared: readonly DeclaredKey[];
  readonly rules: ApplyRules;
  readonly dryRun?: boolean;
  readonly delivery?: SecretDelivery<Applied> | undefined;
}
