import { denied, OPERATOR, requirePolicy, violationsOfChange } from '../authorization/index.ts';
import type { ChangedKey, Transaction } from './transaction.ts';

/**
 * Removes the creator of a key, so that no other key limits it or deletes it. Its secret stays.
 * @throws KeysError NOT_FOUND, POLICY_VIOLATED; ForbiddenError for everyone except the operator
 */
export async function adoptKey(transaction: Transaction, id: string): Promise<ChangedKey> {
  if (transaction.caller !== OPERATOR) throw denied(transaction.caller, 'Only the operator can adopt keys.');
  const before = await transaction.findToChange(id);
  const after = { ...before, createdBy: null };
  requirePolicy(violationsOfChange(await transaction.findChain(before), after, transaction));
  return transaction.change(before, after, 'ADOPT');
}
