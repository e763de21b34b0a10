import { type Actor, OPERATOR, principalOf } from '../authorization/principal.ts';
import { KeysError } from '../errors.ts';
import { statusOf } from '../key/status.ts';
import type { Catalog } from '../permissions/catalog.ts';
import type { KeyRepository } from '../repository.ts';
import type { SecretChange, SecretDelivery } from './delivery.ts';
import { Transaction } from './transaction.ts';

export interface TransactionsOptions {
  repository: KeyRepository;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** The user of the command line, for the audit log. */
  operator: string;
}

/** Runs changes of keys, each in a transaction of the store. */
export class Transactions {
  readonly #options: TransactionsOptions;

  constructor(options: TransactionsOptions) {
    this.#options = options;
  }

  /**
   * Runs a transaction with the caller as it is inside it: its grants may have changed since it was authenticated.
   * @throws KeysError FORBIDDEN for a caller that is no longer valid; a STORE_ error; what `work` throws
   */
  run<Result>(
    actor: Actor,
    work: (transaction: Transaction) => Promise<Result>,
    now = this.#options.clock(),
  ): Promise<Result> {
    const { repository, catalog, operator } = this.#options;
    return repository.write(async (writer) => {
      let caller: Actor = OPERATOR;
      if (actor !== OPERATOR) {
        const key = await writer.findById(actor.key.id);
        if (!key || statusOf(key, now) !== 'ACTIVE')
          throw new KeysError('FORBIDDEN', 'The key that asks for this is no longer valid.');
        caller = principalOf(key, catalog, actor.observer);
      }
      const transaction = new Transaction(writer, { caller, catalog, now, operator });
      const result = await work(transaction);
      await transaction.finish();
      return result;
    });
  }

  /**
   * Runs a change that makes secrets, and delivers them. A delivery that fails reverts the change.
   * @throws what `run` and `delivery` throw
   */
  async runWithSecrets<Done, Change>(
    actor: Actor,
    { run, present, revert }: SecretChange<Done, Change>,
    { delivery, now }: { delivery: SecretDelivery<Change> | undefined; now?: number },
  ): Promise<Change> {
    const done = await this.run(
      actor,
      async (transaction) => {
        const result = await run(transaction);
        delivery?.prepare?.(present(result));
        return result;
      },
      now,
    );
    const change = present(done);
    try {
      await delivery?.deliver(change);
    } catch (error) {
      await this.run(OPERATOR, (transaction) => revert(transaction, done));
      throw error;
    }
    return change;
  }
}
