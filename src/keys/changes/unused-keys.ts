import { OPERATOR } from '../authorization/index.ts';
import type { Parts, Transaction } from './transaction.ts';
import { type ApiKey, statusOf } from '../key/index.ts';
import { ruleText } from '../permissions/index.ts';
import { declarePort } from '../basics/index.ts';
import type { ListPosition } from '../repository/index.ts';

/** Finds out which keys are in use. */
export interface KeysInUse {
  /**
   * Those of these keys that were used since a time, in milliseconds since 1970, or created, imported, enabled, given
   * another secret or brought back; or a parent key of one of which that is so.
   */
  find(ids: readonly string[], since: number): Promise<Set<string>>;
  /** The ids of those of these keys that the policy has disabled, and nobody since. */
  disabledByPolicy(keys: readonly Pick<ApiKey, 'id' | 'disabledAt'>[]): Promise<Set<string>>;
}
export const KEYS_IN_USE = declarePort<KeysInUse>('keys in use');

/** How many keys are looked at, and may be disabled, at once: others write in between. */
const PIECE_KEYS = 200;

/**
 * Disables keys that are not used, as the policy demands, piece by piece. Several servers may do so at once: whether a
 * key is used is looked at again in the transaction that disables it.
 */
export class UnusedKeys {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * Disables the keys that were not used for as long as the policy says. It does so piece by piece, as it is asked for
   * the next one. Whoever enables one of them gives it as long again.
   * @returns how many keys of each piece were disabled
   * @throws KeysError STORE_…
   */
  async *disableUnused(): AsyncGenerator<number> {
    const { repository, catalog, clock, transactions } = this.#options;
    const { policy } = catalog;
    if (policy.disableUnused === null) return;
    const now = clock();
    const since = now - policy.disableUnused;
    const auditActor = { kind: 'POLICY', id: null, name: ruleText('disableUnused', policy) } as const;
    for (let after: ListPosition | undefined; ;) {
      const page = await repository.list({ limit: PIECE_KEYS, after, status: { is: 'ACTIVE', now } });
      const ids = page.filter(({ createdAt, damaged }) => createdAt < since && !damaged).map(({ id }) => id);
      const inUse = await repository.port(KEYS_IN_USE).find(ids, since);
      const unused = ids.filter((id) => !inUse.has(id));
      yield unused.length === 0
        ? 0
        : await transactions.run(OPERATOR, (transaction) => disableUnused(transaction, unused, since), { auditActor });
      const last = page.at(-1);
      if (!last || page.length < PIECE_KEYS || last.createdAt >= since) return;
      after = { createdAt: last.createdAt, id: last.id };
    }
  }

  /** The ids of those of these keys that the policy has disabled, since they were not used. */
  disabledByPolicy(keys: readonly ApiKey[]): Promise<Set<string>> {
    const disabled = keys.filter(({ disabledAt }) => disabledAt !== null);
    return disabled.length === 0
      ? Promise.resolve(new Set())
      : this.#options.repository.port(KEYS_IN_USE).disabledByPolicy(disabled);
  }
}

/**
 * Disables those of some keys that are in use no more: see `KeysInUse.find`.
 * @param since milliseconds since 1970
 * @returns how many were disabled
 */
async function disableUnused(transaction: Transaction, ids: readonly string[], since: number): Promise<number> {
  const { find, now } = transaction;
  const inUse = await find.port(KEYS_IN_USE).find(ids, since);
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
