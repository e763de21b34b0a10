import {
  findChain,
  requirePolicy,
  requireToChange,
  violationsByCount,
  violationsOfChange,
} from '../authorization/index.ts';
import { assertValid, NameTakenError } from '../basics/index.ts';
import {
  type ApiKey,
  expiryOf,
  givenFields,
  type KeyChange,
  readFields,
  removalIssues,
  validateGrants,
} from '../key/index.ts';
import { type ConfusableName, findConfusableNames } from './confusable-names.ts';
import { type ChangedKey, type Place, requireUnrefused, type Transaction } from './transaction.ts';

/** A key that was updated. */
export interface UpdatedKey extends ChangedKey {
  /** The name, if it is new and looks like other names. */
  confusable: ConfusableName[];
}

/**
 * Makes the change of a validated request.
 * @throws ValidationError; KeysError NOT_FOUND, NAME_CONFUSABLE, POLICY_VIOLATED, NOT_FOR_PEOPLE; NameTakenError;
 * ForbiddenError
 */
export async function updateKey(transaction: Transaction, id: string, change: KeyChange): Promise<UpdatedKey> {
  const { caller, find } = transaction;
  const before = await transaction.findToChange(id);
  const after = await updated(before, change, transaction);
  await requireChange(transaction, before, after);
  const holder = await find.findByName(after.name);
  if (holder && holder.id !== id) throw new NameTakenError(after.name, false);
  const isRenamed = after.name !== before.name;
  const confusable = isRenamed ? await findConfusableNames(caller, find, [after.name], new Set([id])) : [];
  return { ...(await transaction.change(before, after, 'UPDATE')), confusable };
}

/**
 * A key after the change of a validated request; the same object if nothing changes.
 * @throws ValidationError; KeysError NOT_FOR_PEOPLE
 */
export async function updated<Key extends ApiKey>(
  before: Key,
  change: KeyChange,
  place: Pick<Place, 'catalog' | 'now' | 'listeners'>,
): Promise<Key> {
  const { catalog, now } = place;
  const expiry = expiryOf(change, now);
  const given = { ...readFields(givenFields, change, catalog), ...(expiry !== undefined && { expiresAt: expiry }) };
  assertValid(removalIssues(before, given));
  const differs = (field: keyof typeof given) => JSON.stringify(before[field]) !== JSON.stringify(given[field]);
  const fields = (Object.keys(given) as (keyof typeof given)[]).filter(differs);
  await requireUnrefused(place, before, fields);
  const after = { ...before, ...given };
  if (fields.includes('roles') || fields.includes('permissions'))
    assertValid(validateGrants(after.roles, after.permissions));
  return fields.length > 0 ? after : before;
}

/** Enables or disables a key. @throws KeysError NOT_FOUND, POLICY_VIOLATED; ForbiddenError */
export async function setKeyEnabled(transaction: Transaction, id: string, enabled: boolean): Promise<ChangedKey> {
  const before = await transaction.findToChange(id);
  const after = await planSwitch(transaction, before, enabled);
  return transaction.change(before, after, enabled ? 'ENABLE' : 'DISABLE');
}

/**
 * The key after it is enabled or disabled.
 * @throws KeysError POLICY_VIOLATED; ForbiddenError
 */
export async function planSwitch<Key extends ApiKey>(place: Place, before: Key, enabled: boolean): Promise<Key> {
  if ((before.disabledAt === null) === enabled) return before;
  const after = { ...before, disabledAt: enabled ? null : place.now };
  await requireChange(place, before, after);
  return after;
}

/**
 * Refuses a change that the caller is not allowed to make, or that violates the policy.
 * @throws KeysError POLICY_VIOLATED; ForbiddenError
 */
export async function requireChange(place: Place, before: ApiKey, after: ApiKey): Promise<void> {
  const { caller, catalog, find } = place;
  const chain = await findChain(find, before);
  requireToChange(caller, chain, after, catalog);
  const tooMany = await violationsByCount(find, { added: [after], removed: [before] }, place);
  requirePolicy([...violationsOfChange(chain, after, place), ...tooMany]);
}
