import { type Actor, OPERATOR, requirePermission } from '../../keys/authorization/index.ts';
import { assertValid, KeysError } from '../../keys/basics/index.ts';
import { MAX_LINE_LENGTH, normalizeLine, validateLine } from '../../keys/key/index.ts';
import type { FeatureParts } from '../../keys/service/index.ts';

/** An administrator's statement about the keys that exist. */
export interface Attestation {
  /** The statement: 1 to 1,000 code points, without control characters. */
  readonly text: string;
  /** The SHA-256 of the reviewed list, in hex. */
  readonly sha256: string;
  /** Number of keys. */
  readonly keys: number;
}

/** Checks an attestation. @returns its text as it is recorded @throws ValidationError; KeysError INPUT_INVALID */
export function readAttestation({ text: given, sha256, keys }: Attestation): Attestation {
  assertValid(validateLine(given, { name: 'attestation', max: MAX_LINE_LENGTH, code: 'INPUT_INVALID' }));
  const text = normalizeLine(given);
  if (text === null)
    throw new KeysError('INPUT_INVALID', 'The attestation is empty. Write who reviewed what, in one line.');
  if (!/^[0-9a-f]{64}$/.test(sha256))
    throw new KeysError('INPUT_INVALID', 'The digest of a review is not a SHA-256 in hex.');
  return { text, sha256, keys };
}

/** Reviews of the keys. */
export class Reviews {
  readonly #transactions: FeatureParts['transactions'];

  constructor({ transactions }: Pick<FeatureParts, 'transactions'>) {
    this.#transactions = transactions;
  }

  /**
   * Records in the audit log that the actor attests a review.
   * @throws ValidationError; KeysError INPUT_INVALID; ForbiddenError; a STORE_ error
   */
  async attest(attestation: Attestation, actor: Actor): Promise<void> {
    const after = { ...readAttestation(attestation) };
    await this.#transactions.run(actor, async (transaction) => {
      const { caller } = transaction;
      if (caller !== OPERATOR) requirePermission(caller, 'API_KEY', 'UPDATE_ANY');
      transaction.note({ action: 'REVIEW', after });
    });
  }
}
