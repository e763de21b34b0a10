import { OPERATOR } from '../../keys/authorization/index.ts';
import { declarePort } from '../../keys/basics/index.ts';
import type { Parts, Transaction } from '../../keys/changes/index.ts';
import { statusOf } from '../../keys/key/index.ts';
import { ruleText } from '../../keys/permissions/index.ts';
import type { ListPosition } from '../../keys/repository/index.ts';

/** Finds out which keys are in use. */
export interface KeysInUse {
  /**
   * The keys that count as in use: they or a parent key were used since a time, in milliseconds since 1970, or created,
   * imported, enabled, rotated or restored.
   */
  find(ids: readonly string[], since: number): Promise<Set<string>>;
}
export const KEYS_IN_USE = declarePort<KeysInUse>('keys in use');

/** How many keys are checked, and possibly disabled, per transaction: others write in between. */
const PIECE_KEYS = 200;

/**
 * Disables unused keys as the policy demands, piece by piece. Several servers can do so at the same time: the
 * transaction that disables a key checks its use again.
 */
export class UnusedKeys {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * Disables the keys that were not used for the policy's period, one piece for each value that is requested. Enabling
   * a key starts its period again.
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
}

/**
 * Disables those of some keys that are no longer in use: see `KeysInUse.find`.
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
