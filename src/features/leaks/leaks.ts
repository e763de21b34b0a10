import { OPERATOR } from '../../keys/authorization/index.ts';
import { printable, UNIT_MS } from '../../keys/basics/index.ts';
import { finishedKey } from '../../keys/key/index.ts';
import { prefixOf } from '../../keys/secret/index.ts';
import type { Parts, Transaction, Transactions } from '../../keys/changes/index.ts';

/** A secret of a key that was found where it should not be. */
export interface Leak {
  /** The id of the key. */
  id: string;
  /** The public id of the secret. */
  publicId: string;
  /** The place where it was found, in words for users. */
  place: string;
}

const MAX_PLACE_LENGTH = 300;
/** Repeated findings are noted once in this time. */
const AGAIN_MS = UNIT_MS.d;
const MAX_SECRETS = 100;

/** The rules for secrets that are found where they should not be. */
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
  note(leak: Leak): Promise<boolean> {
    return this.#transactions.run(OPERATOR, (transaction) => noteLeak(transaction, leak));
  }

  /**
   * Revokes a secret for any holder (RFC 7009): its key is disabled with its child keys. If it is a previous secret,
   * only that is revoked.
   * @throws KeysError STORE_…
   */
  revoke(leak: RevokedSecret): Promise<void> {
    const auditActor = { kind: 'REQUEST', id: null, name: null } as const;
    return this.#transactions.run(OPERATOR, (transaction) => revokeSecret(transaction, leak), {
      revokes: true,
      auditActor,
    });
  }
}

/** A leaked secret; knowing it authorizes its revocation. */
export interface RevokedSecret extends Leak {
  /** The place from which this is asked, for the audit log. */
  address?: string | undefined;
}

/** Notes in the audit log that a secret was found. @returns whether it was not noted lately */
async function noteLeak(
  transaction: Transaction,
  { id, publicId, place, address }: Leak & Pick<RevokedSecret, 'address'>,
): Promise<boolean> {
  const { find, auditLog, now } = transaction;
  const key = await find.findById(id);
  if (!key) return false;
  const since = now - AGAIN_MS;
  const noted = await auditLog.find({ apiKey: id, action: 'LEAK', since, order: 'newest', limit: MAX_SECRETS });
  const secret = prefixOf(publicId);
  if (noted.some(({ after }) => after?.['secret'] === secret)) return false;
  const after = { secret, place: printable(place, MAX_PLACE_LENGTH) };
  transaction.note({ action: 'LEAK', key, after, address });
  return true;
}

/** Disables the key of a secret. A previous one, which works only during its grace period, is revoked by itself. */
async function revokeSecret(transaction: Transaction, leak: RevokedSecret): Promise<void> {
  await noteLeak(transaction, leak);
  const { now, find } = transaction;
  const key = await find.findById(leak.id);
  if (!key || key.damaged) return;
  const single = finishedKey(key, now);
  if (key.publicId !== leak.publicId) {
    if (key.rotation?.previousPublicId === leak.publicId) await transaction.change(key, single, 'ROTATE_FINISH');
  } else if (key.disabledAt === null) await transaction.change(key, { ...key, disabledAt: now }, 'DISABLE');
}
