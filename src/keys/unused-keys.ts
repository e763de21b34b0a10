import { OPERATOR } from './authorization/principal.ts';
import { disableUnused } from './changes/disable-unused.ts';
import { Transactions, type TransactionsOptions } from './changes/transactions.ts';
import type { ListPosition } from './repository.ts';
import { ruleText } from './permissions/policy.ts';

/** How many keys are looked at, and may be disabled, at once: others write in between. */
const PIECE_KEYS = 200;

/**
 * Disables keys that are not used, as the policy demands, piece by piece. Several servers may do so at once: whether a
 * key is used is looked at again in the transaction that disables it.
 */
export class UnusedKeys {
  readonly #options: TransactionsOptions;
  readonly #transactions: Transactions;

  constructor(options: TransactionsOptions) {
    this.#options = options;
    this.#transactions = new Transactions(options);
  }

  /**
   * Goes through all keys once. A piece at a time, so that whoever asks can stop in between.
   * @returns how many keys of each piece were disabled
   * @throws KeysError STORE_…
   */
  async *disable(): AsyncGenerator<number> {
    const { repository, catalog, clock } = this.#options;
    const { policy } = catalog;
    if (policy.disableUnused === null) return;
    const now = clock();
    const since = now - policy.disableUnused;
    const auditActor = { kind: 'POLICY', id: null, name: ruleText('disableUnused', policy) } as const;
    for (let after: ListPosition | undefined; ;) {
      const page = await repository.list({ limit: PIECE_KEYS, after, status: { is: 'ACTIVE', now } });
      const ids = page.filter(({ createdAt, damaged }) => createdAt < since && !damaged).map(({ id }) => id);
      const inUse = await repository.findInUse(ids, since);
      const unused = ids.filter((id) => !inUse.has(id));
      yield unused.length === 0
        ? 0
        : await this.#transactions.run(OPERATOR, (transaction) => disableUnused(transaction, unused, since), {
            revokes: true,
            auditActor,
          });
      const last = page.at(-1);
      if (!last || page.length < PIECE_KEYS || last.createdAt >= since) return;
      after = { createdAt: last.createdAt, id: last.id };
    }
  }
}
