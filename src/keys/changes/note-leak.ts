import { OPERATOR } from '../authorization/principal.ts';
import { anyText, checkOptions, required, text } from '../options.ts';
import { prefixOf } from '../secret/secret.ts';
import { printable } from '../text.ts';
import { UNIT_MS } from '../time.ts';
import type { Transaction } from './transaction.ts';
import type { Parts, Transactions } from './transactions.ts';

/** A secret of a key that was found where it should not be. */
export interface Leak {
  /** The id of the key. */
  id: string;
  /** The public id of the secret. */
  publicId: string;
  /** Where it was found, in words for users. */
  place: string;
}

const MAX_PLACE_LENGTH = 300;
/** What is found again and again is noted once in this time. */
const AGAIN_MS = UNIT_MS.d;
const MAX_SECRETS = 100;

/** Secrets that are found where they should not be. */
export class Leaks {
  readonly #transactions: Transactions;

  constructor({ transactions }: Pick<Parts, 'transactions'>) {
    this.#transactions = transactions;
  }

  /**
   * Notes, for the operator, that a secret was found where it should not be: once a day.
   * @returns whether it was noted
   * @throws KeysError STORE_…
   */
  async note(leak: Leak): Promise<boolean> {
    checkOptions<Leak>('keys.leaks.note', leak, {
      id: required(text),
      publicId: required(text),
      place: required(anyText),
    });
    return this.#transactions.run(OPERATOR, (transaction) => noteLeak(transaction, leak));
  }
}

/** Notes in the audit log that a secret was found. @returns whether it was not noted lately */
async function noteLeak(transaction: Transaction, { id, publicId, place }: Leak): Promise<boolean> {
  const { find, auditLog, now } = transaction;
  const key = await find.findById(id);
  if (!key) return false;
  const since = now - AGAIN_MS;
  const noted = await auditLog.find({ apiKey: id, action: 'LEAK', since, order: 'newest', limit: MAX_SECRETS });
  const secret = prefixOf(publicId);
  if (noted.some(({ after }) => after?.['secret'] === secret)) return false;
  const after = { secret, place: printable(place, MAX_PLACE_LENGTH) };
  transaction.note({ action: 'LEAK', key, after });
  return true;
}
