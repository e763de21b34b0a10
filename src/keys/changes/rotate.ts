import { findChain, requireFor, requireToHoldKey } from '../authorization/index.ts';
import {
  type Activation,
  type ApiKey,
  finishedKey,
  isInProgress,
  isTakenUp,
  NO_USE,
  rolledBackKey,
  type Rotation,
  type StoredKey,
  USE,
  withoutDigests,
} from '../key/index.ts';
import { formatTime, KeysError } from '../basics/index.ts';
import type { KeyFinder } from '../repository/index.ts';
import type { Secret } from '../secret/index.ts';
import type { Issued } from './issued.ts';
import { type ChangedKey, type Place, requireUnrefused, type Transaction } from './transaction.ts';

/** A rotation, and its effects on the keys that the key had created. */
export interface KeyRotation extends ChangedKey {
  /** All of them, after the rotation. */
  created: ApiKey[];
  /** Those that it disabled. */
  disabled: ApiKey[];
  /** Effects of the key on others that are still in force, if the keys that it had created are disabled. */
  issued: Issued[];
}

/**
 * Gives a key a new secret; the previous one keeps working until the grace period ends. A rotation in progress is
 * finished first if its new secret is in use.
 * @throws KeysError NOT_FOUND; ROTATION_IN_PROGRESS if it is not in use; ForbiddenError
 */
export async function rotateKey(
  transaction: Transaction,
  id: string,
  secret: Secret,
  { grace, activate, disableSince }: { grace: number; activate: Activation; disableSince: number | null },
): Promise<KeyRotation> {
  const { now } = transaction;
  const found = await transaction.findToChange(id);
  await requireToRotate(transaction, found);
  const before = finishedKey(found, now);
  if (before !== found) await transaction.change(found, before, 'ROTATE_FINISH');
  const after = rotatedKey(before, secret, { now, grace, previousEndsAt: activate === 'NOW' ? now + grace : null });
  const rotated = await transaction.change(before, after, 'ROTATE');
  const created = await disableCreated(transaction, id, disableSince);
  return {
    ...rotated,
    ...created,
    issued: disableSince === null ? [] : await transaction.issued([id], disableSince),
  };
}

/** A key with a new secret beside its current one. @param at times in milliseconds since 1970, and the grace period */
export function rotatedKey(
  key: StoredKey,
  { publicId, digest }: Secret,
  { now, grace, previousEndsAt }: { now: number; grace: number; previousEndsAt: number | null },
): StoredKey {
  return {
    ...key,
    publicId,
    digest,
    previousDigest: key.digest,
    rotation: { previousPublicId: key.publicId, startedAt: now, grace, previousEndsAt },
  };
}

/** Refuses a caller that is not allowed to rotate a key now. @throws KeysError ROTATION_IN_PROGRESS; ForbiddenError */
export async function requireToRotate(place: Place, key: ApiKey): Promise<void> {
  const { caller, catalog, find, now } = place;
  await requireUnrefused(place, key);
  // The recipient of the secret can do everything that the key is allowed to do.
  requireToHoldKey(caller, await findChain(find, key), key, catalog);
  const waiting = await findUnused(find, key, now);
  if (!waiting) return;
  const { previousEndsAt } = waiting;
  const end = previousEndsAt === null ? '' : `, or after ${formatTime(previousEndsAt)}`;
  throw new KeysError(
    'ROTATION_IN_PROGRESS',
    `The API key "${key.name}" is already being rotated, and its latest request did not use the new secret. ` +
      `It can be rotated once the new secret is in use${end}.`,
  );
}

/** The rotation in progress of a key, unless its new secret is already in use. */
export async function findUnused(find: KeyFinder, { id, rotation }: ApiKey, now: number): Promise<Rotation | null> {
  if (!isInProgress(rotation, now)) return null;
  const use = (await find.port(USE).totals([id])).get(id) ?? NO_USE;
  return isTakenUp(rotation, use) ? null : rotation;
}

async function disableCreated(
  transaction: Transaction,
  id: string,
  since: number | null,
): Promise<Pick<KeyRotation, 'created' | 'disabled'>> {
  const family = await transaction.find.findWithDescendants([id]);
  const created = family.filter(({ createdBy }) => createdBy === id);
  const leaked = since === null ? [] : leakedSince(created, since);
  requireFor(transaction.caller, 'UPDATE', leaked);
  const disabled = new Map<string, ApiKey>();
  for (const key of leaked) {
    const { after } = await transaction.change(key, { ...key, disabledAt: transaction.now }, 'DISABLE');
    disabled.set(key.id, after);
  }
  const afterwards = created.map((key) => disabled.get(key.id) ?? withoutDigests(key));
  return { created: afterwards, disabled: [...disabled.values()] };
}

export function leakedSince<Key extends ApiKey>(created: readonly Key[], since: number): Key[] {
  return created.filter(({ createdAt, disabledAt }) => disabledAt === null && createdAt >= since);
}

/**
 * Starts the grace period of the previous secret, since the new one has arrived. Does nothing if it has started
 * already, or the key has another secret by now.
 */
export async function activateRotation(
  transaction: Transaction,
  id: string,
  publicId: string,
): Promise<ChangedKey | undefined> {
  const before = await transaction.find.findById(id);
  if (before?.publicId !== publicId || before.rotation?.previousEndsAt !== null) return undefined;
  const rotation = { ...before.rotation, previousEndsAt: transaction.now + before.rotation.grace };
  return transaction.change(before, { ...before, rotation }, 'ROTATE_ACTIVATE');
}

/**
 * Starts the grace period of the previous secret if it waits for the first use of the new one.
 * @throws KeysError NOT_FOUND; ForbiddenError
 */
export async function startGrace(transaction: Transaction, id: string): Promise<ChangedKey> {
  const before = await transaction.findToChange(id);
  const started = await activateRotation(transaction, id, before.publicId);
  return started ?? { before: withoutDigests(before), after: withoutDigests(before) };
}

/** Revokes the previous secret at once. @throws KeysError NOT_FOUND, ROTATION_NONE; ForbiddenError */
export async function finishRotation(transaction: Transaction, id: string): Promise<ChangedKey> {
  const before = await transaction.findToChange(id);
  requireRotating(before, transaction.now);
  return transaction.change(before, finishedKey(before, transaction.now), 'ROTATE_FINISH');
}

/**
 * Revokes the new secret at once; the previous one keeps working.
 * @throws KeysError NOT_FOUND, ROTATION_NONE; ForbiddenError
 */
export async function rollBackRotation(transaction: Transaction, id: string): Promise<ChangedKey> {
  const before = await transaction.findToChange(id);
  await requireToRollBack(transaction, before);
  return transaction.change(before, rolledBackKey(before), 'ROTATE_ROLLBACK');
}

/** Reverts a rotation whose secret was not delivered, unless the key has another secret by now. */
export async function revertRotation(transaction: Transaction, { after, disabled }: KeyRotation): Promise<void> {
  const key = await transaction.find.findById(after.id);
  if (key?.publicId === after.publicId && isInProgress(key.rotation, transaction.now))
    await rollBackRotation(transaction, after.id);
  for (const { id, disabledAt } of disabled) {
    const created = await transaction.find.findById(id);
    if (created?.disabledAt === disabledAt)
      await transaction.change(created, { ...created, disabledAt: null }, 'ENABLE');
  }
}

/**
 * Refuses a caller that is not allowed to bring back the previous secret now.
 * @throws KeysError ROTATION_NONE; ForbiddenError
 */
export async function requireToRollBack({ caller, catalog, find, now }: Place, key: ApiKey): Promise<void> {
  requireRotating(key, now);
  requireToHoldKey(caller, await findChain(find, key), key, catalog);
}

/** Throws unless a rotation is in progress. @throws KeysError ROTATION_NONE */
export function requireRotating({ name, rotation }: ApiKey, now: number): void {
  if (isInProgress(rotation, now)) return;
  throw new KeysError('ROTATION_NONE', `The API key "${name}" is not being rotated: it has only one working secret.`);
}
