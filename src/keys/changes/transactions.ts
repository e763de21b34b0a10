import { chainStatus, findChain } from '../authorization/chain.ts';
import { type Actor, OPERATOR, type Principal, principalOf } from '../authorization/principal.ts';
import { KeysError } from '../errors.ts';
import type { Catalog } from '../permissions/catalog.ts';
import type { KeyFinder, KeyRepository } from '../repository.ts';
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
      const caller = actor === OPERATOR ? OPERATOR : await refreshed(actor, writer, { catalog, now });
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

/**
 * The principal as it is now.
 * @throws KeysError FORBIDDEN where its key, or the secret that it came with, no longer changes keys
 */
async function refreshed(
  { key, secret, observer }: Principal,
  find: KeyFinder,
  { catalog, now }: { catalog: Catalog; now: number },
): Promise<Principal> {
  const refused = (message: string) => {
    observer?.lacked([]);
    return new KeysError('FORBIDDEN', message);
  };
  const current = await find.findById(key.id);
  const chain = current && (await findChain(find, current));
  if (!chain || chainStatus(chain, now) !== 'ACTIVE') throw refused('The key that asks for this is no longer valid.');
  if (secret === 'previous' || current.publicId !== key.publicId)
    throw refused('A previous secret changes no keys. Use the newest secret of this key.');
  return principalOf(chain, catalog, { observer });
}
