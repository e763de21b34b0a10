import type { KeyChange } from '../key/api-key.ts';
import { normalizeDescription } from '../key/description.ts';
import { NameTakenError, assertValid } from '../errors.ts';
import { expiryOf } from '../key/expiry.ts';
import { normalizeName } from '../key/name.ts';
import { PermissionSet } from '../permissions/permission-set.ts';
import { requireToHold, requireToOutlive } from '../authorization/principal.ts';
import type { ChangedKey, Transaction } from './transaction.ts';
import { validateGrants, readGrants } from '../key/validation.ts';

/**
 * Changes what a request that was checked asks for.
 * @throws ValidationError; KeysError NOT_FOUND; NameTakenError; ForbiddenError
 */
export async function updateKey(transaction: Transaction, id: string, change: KeyChange): Promise<ChangedKey> {
  const { caller, find, catalog, now } = transaction;
  const before = await transaction.findToChange(id);
  const given = readGrants(change, catalog);
  const expiry = expiryOf(change, now);
  const after = {
    ...before,
    name: change.name === undefined ? before.name : normalizeName(change.name),
    description: change.description === undefined ? before.description : normalizeDescription(change.description),
    roles: change.roles ? given.roles : before.roles,
    permissions: change.permissions ? given.permissions : before.permissions,
    expiresAt: expiry === undefined ? before.expiresAt : expiry,
  };
  assertValid(validateGrants(after.roles, after.permissions));
  if (change.roles ?? change.permissions) requireToHold(caller, PermissionSet.of(catalog, after));
  if (expiry !== undefined) requireToOutlive(caller, expiry);
  const holder = await find.findByName(after.name);
  if (holder && holder.id !== id) throw new NameTakenError(after.name, false);
  return transaction.change(before, after, 'UPDATE');
}

/** Switches a key on or off. @throws KeysError NOT_FOUND; ForbiddenError */
export async function setKeyEnabled(transaction: Transaction, id: string, enabled: boolean): Promise<ChangedKey> {
  const before = await transaction.findToChange(id);
  const isEnabled = before.disabledAt === null;
  const disabledAt = enabled ? null : transaction.now;
  return transaction.change(
    before,
    isEnabled === enabled ? before : { ...before, disabledAt },
    enabled ? 'ENABLE' : 'DISABLE',
  );
}
