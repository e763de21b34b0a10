import { requireFor } from '../authorization/index.ts';
import { checkSearchText, yielding } from '../basics/index.ts';
import { type ApiKey, withoutDigests } from '../key/index.ts';
import type { Transaction } from './transaction.ts';

/**
 * Deletes keys and all keys that they created. Unknown ids are ignored.
 * @returns the deleted keys, the named ones first
 * @throws ForbiddenError
 */
export async function deleteKeys(transaction: Transaction, ids: readonly string[]): Promise<ApiKey[]> {
  for (const id of ids) checkSearchText(id);
  const named = new Set(ids);
  const leaving = await transaction.find.findWithDescendants(ids);
  const isNamed = ({ id }: ApiKey) => named.has(id);
  requireFor(transaction.caller, 'DELETE', leaving.filter(isNamed));
  await transaction.delete(leaving);
  const deleted: ApiKey[] = [];
  for await (const key of yielding([...leaving.filter(isNamed), ...leaving.filter((key) => !isNamed(key))]))
    deleted.push(withoutDigests(key));
  return deleted;
}
