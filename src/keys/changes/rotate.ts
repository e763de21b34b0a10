import type { StoredKey } from '../key/api-key.ts';
import { KeysError } from '../errors.ts';
import { PermissionSet } from '../permissions/permission-set.ts';
import { requireToHold, requireToOutlive } from '../authorization/principal.ts';
import { type Activation, isInProgress } from '../key/rotation.ts';
import type { Secret } from '../secret/secret.ts';
import type { ChangedKey, Transaction } from './transaction.ts';

/**
 * Gives a key a new secret; the one that it had works on until the grace ends.
 * @throws KeysError NOT_FOUND; ROTATION_IN_PROGRESS while it has two; ForbiddenError
 */
export async function rotateKey(
  transaction: Transaction,
  id: string,
  secret: Secret,
  { grace, activate }: { grace: number; activate: Activation },
): Promise<ChangedKey> {
  const { caller, catalog, now } = transaction;
  const before = await transaction.findToChange(id);
  // Who gets a secret can do all that it can do.
  requireToHold(caller, PermissionSet.of(catalog, before));
  requireToOutlive(caller, before.expiresAt);
  if (isInProgress(before.rotation, now)) {
    throw new KeysError(
      'ROTATION_IN_PROGRESS',
      `The API key "${before.name}" is being rotated already: it has two secrets that work.`,
    );
  }
  const after = {
    ...before,
    publicId: secret.publicId,
    digest: secret.digest,
    previousDigest: before.digest,
    rotation: {
      previousPublicId: before.publicId,
      startedAt: now,
      grace,
      previousEndsAt: activate === 'NOW' ? now + grace : null,
    },
  };
  return transaction.change(before, after, 'ROTATE');
}

/**
 * Lets the grace begin: the new secret is known to have arrived. Nothing happens where it began before, or where the key
 * has another secret by now.
 */
export async function activateRotation(transaction: Transaction, id: string, publicId: string): Promise<void> {
  const before = await transaction.find.findById(id);
  if (before?.publicId !== publicId || before.rotation?.previousEndsAt !== null) return;
  const rotation = { ...before.rotation, previousEndsAt: transaction.now + before.rotation.grace };
  await transaction.change(before, { ...before, rotation }, 'ROTATE_ACTIVATE');
}

/** Ends the secret before at once. @throws KeysError NOT_FOUND, ROTATION_NONE; ForbiddenError */
export async function finishRotation(transaction: Transaction, id: string): Promise<ChangedKey> {
  const before = await findRotating(transaction, id);
  return transaction.change(before, { ...before, rotation: null, previousDigest: null }, 'ROTATE_FINISH');
}

/** Ends the new secret at once; the one before stays. @throws KeysError NOT_FOUND, ROTATION_NONE; ForbiddenError */
export async function rollBackRotation(transaction: Transaction, id: string): Promise<ChangedKey> {
  const before = await findRotating(transaction, id);
  const { rotation, previousDigest } = before;
  const after = {
    ...before,
    publicId: rotation.previousPublicId,
    digest: previousDigest,
    rotation: null,
    previousDigest: null,
  };
  return transaction.change(before, after, 'ROTATE_ROLLBACK');
}

/** Takes a rotation back whose secret nobody got, unless the key has changed its secret since. */
export async function undoRotation(transaction: Transaction, id: string, publicId: string): Promise<void> {
  const key = await transaction.find.findById(id);
  if (key?.publicId === publicId && key.rotation) await rollBackRotation(transaction, id);
}

async function findRotating(
  transaction: Transaction,
  id: string,
): Promise<StoredKey & { rotation: NonNullable<StoredKey['rotation']>; previousDigest: string }> {
  const key = await transaction.findToChange(id);
  const { rotation, previousDigest } = key;
  if (!isInProgress(rotation, transaction.now) || previousDigest === null) {
    throw new KeysError(
      'ROTATION_NONE',
      `The API key "${key.name}" is not being rotated: it has one secret that works.`,
    );
  }
  return { ...key, rotation, previousDigest };
}
