import { statusOf } from '../key/status.ts';
import type { Transaction } from './transaction.ts';

/**
 * Disables those of some keys that are in use no more: see `KeyFinder.findInUse`.
 * @param since milliseconds since 1970
 * @returns how many were disabled
 */
export async function disableUnused(transaction: Transaction, ids: readonly string[], since: number): Promise<number> {
  const { find, now } = transaction;
  const inUse = await find.findInUse(ids, since);
  const keys = new Map((await find.findBy('id', ids)).map((key) => [key.id, key]));
  let count = 0;
  for (const id of ids) {
    const key = keys.get(id);
    if (!key || inUse.has(id) || statusOf(key, now) !== 'ACTIVE') continue;
    await transaction.change(key, { ...key, disabledAt: now }, 'DISABLE');
    count += 1;
  }
  return count;
}
