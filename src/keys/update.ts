import type { KeyChange } from './api-key.ts';
import { normalizeDescription } from './description.ts';
import { NameTakenError, refuseFaults } from './errors.ts';
import { expiryOf } from './expiry.ts';
import { normalizeName } from './name.ts';
import { PermissionSet } from './permission-set.ts';
import { requireToHold, requireToOutlive } from './principal.ts';
import type { ChangedKey, Transaction } from './transaction.ts';
import { grantsFault, readGrants } from './validation.ts';

/** Changes what a request that was checked asks for. @throws ValidationError; KeysError NOT_FOUND; NameTakenError; ForbiddenError */
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
  refuseFaults(grantsFault(after.roles, after.permissions));
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
