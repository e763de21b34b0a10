import type { AuditActor } from '../audit/audit-entry.ts';
import { chainStatus, findChain } from '../authorization/chain.ts';
import { type Actor, OPERATOR, type Principal, principalOf } from '../authorization/principal.ts';
import { KeysError } from '../errors.ts';
import type { ApiKey } from '../key/api-key.ts';
import type { Catalog } from '../permissions/catalog.ts';
import type { KeyFinder, KeyRepository } from '../repository.ts';
import type { RandomBytes } from '../secret/secret.ts';
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

/** What features are built from. */
export interface Parts extends TransactionsOptions {
  readonly transactions: Transactions;
  readonly randomBytes: RandomBytes;
  readonly randomId: () => string;
}

/** How to run a change. */
export interface RunOptions {
  /** Milliseconds since 1970. Default: the clock's time. */
  now?: number;
  /** See `KeyRepository.write`. */
  revokes?: boolean;
  /** Who the audit log names, where that is not who asks. */
  auditActor?: AuditActor;
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
    { now = this.#options.clock(), revokes = false, auditActor }: RunOptions = {},
  ): Promise<Result> {
    const { repository, catalog, operator } = this.#options;
    return repository.write(
      async (writer) => {
        const caller = actor === OPERATOR ? OPERATOR : await refreshed(actor, writer, { catalog, now });
        const transaction = new Transaction(writer, { caller, catalog, now, operator, auditActor });
        const result = await work(transaction);
        await transaction.finish();
        return result;
      },
      { revokes },
    );
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
      now === undefined ? {} : { now },
    );
    const change = present(done);
    try {
      await delivery?.deliver(change);
    } catch (error) {
      await this.run(OPERATOR, (transaction) => revert(transaction, done), { revokes: true });
      throw error;
    }
    return change;
  }
}

/**
 * The principal of a key as it is now.
 * @throws KeysError FORBIDDEN where that key, or the secret that it came with, no longer changes keys
 */
export async function refreshed(
  {
    apiKey,
    secret,
    observer,
  }: Pick<Principal, 'secret' | 'observer'> & { readonly apiKey: Pick<ApiKey, 'id' | 'publicId'> },
  find: KeyFinder,
  { catalog, now }: { catalog: Catalog; now: number },
): Promise<Principal> {
  const refused = (message: string) => {
    observer?.lacked([]);
    return new KeysError('FORBIDDEN', message);
  };
  const current = await find.findById(apiKey.id);
  const chain = current && (await findChain(find, current));
  if (!chain || chainStatus(chain, now) !== 'ACTIVE') throw refused('The key that asks for this is no longer valid.');
  if (secret === 'previous' || current.publicId !== apiKey.publicId)
    throw refused('A previous secret changes no keys. Use the newest secret of this key.');
  return principalOf(chain, catalog, { observer });
}
