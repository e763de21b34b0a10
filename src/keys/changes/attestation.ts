import { OPERATOR, requirePermission } from '../authorization/index.ts';
import { amount, anyText, assertValid, checkOptions, KeysError, required, type Rules } from '../basics/index.ts';
import { MAX_LINE_LENGTH, normalizeLine, validateLine } from '../key/index.ts';
import type { Transaction } from './transaction.ts';

/** An administrator's statement about the keys that exist. */
export interface Attestation {
  /** The statement: 1 to 1,000 code points, without control characters. */
  readonly text: string;
  /** The SHA-256 of what they have reviewed, in hex. */
  readonly sha256: string;
  /** How many keys that has. */
  readonly keys: number;
}

const ATTESTATION: Rules<Attestation> = {
  text: required(anyText),
  sha256: required(anyText),
  keys: required(amount),
};

/** Checks an attestation. @returns its text as it is recorded @throws ValidationError; KeysError INPUT_INVALID */
export function readAttestation(attestation: Attestation): Attestation {
  checkOptions('keys.attest', attestation, ATTESTATION);
  const { sha256, keys } = attestation;
  assertValid(validateLine(attestation.text, { name: 'attestation', max: MAX_LINE_LENGTH, code: 'INPUT_INVALID' }));
  const text = normalizeLine(attestation.text);
  if (text === null)
    throw new KeysError('INPUT_INVALID', 'The attestation is empty. Write who says what, in one line.');
  if (!/^[0-9a-f]{64}$/.test(sha256))
    throw new KeysError('INPUT_INVALID', 'The digest of a review is not a SHA-256 in hex.');
  return { text, sha256, keys };
}

/** Puts an attestation into the audit log. @throws ForbiddenError for a key that may not change all keys */
export function attest(transaction: Transaction, attestation: Attestation): void {
  const { caller } = transaction;
  if (caller !== OPERATOR) requirePermission(caller, 'API_KEY', 'UPDATE_ANY');
  transaction.note({ action: 'REVIEW', after: { ...attestation } });
}
