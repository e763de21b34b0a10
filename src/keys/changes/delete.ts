import { type ApiKey, withoutDigests } from '../key/api-key.ts';
import { requireFor } from '../authorization/principal.ts';
import { checkSearchText } from '../text.ts';
import { inTurns } from '../turns.ts';
import type { Place, Transaction } from './transaction.ts';

/**
 * Deletes keys, and all keys that they created. Ids that no key has are passed over.
 * @returns what was deleted, the named ones first
 * @throws ForbiddenError
 */
export async function deleteKeys(transaction: Transaction, ids: readonly string[]): Promise<ApiKey[]> {
  for (const id of ids) checkSearchText(id);
  const named = new Set(ids);
  const leaving = await transaction.find.findWithDescendants(ids);
  const isNamed = ({ id }: ApiKey) => named.has(id);
  requireToDelete(transaction, leaving.filter(isNamed));
  await transaction.delete(leaving);
  const deleted: ApiKey[] = [];
  for await (const key of inTurns([...leaving.filter(isNamed), ...leaving.filter((key) => !isNamed(key))]))
    deleted.push(withoutDigests(key));
  return deleted;
}

/** Refuses who may not delete these keys, and so all beneath them. @throws ForbiddenError */
export function requireToDelete({ caller }: Pick<Place, 'caller'>, keys: readonly ApiKey[]): void {
  requireFor(caller, 'DELETE', keys);
}
