import { type ErrorCode, isKeysError } from '../errors.ts';
import type { ApiKey } from '../key/api-key.ts';
import { requireWhole } from '../key/damage.ts';
import { statusOf } from '../key/status.ts';
import type { KeyRepository } from '../repository.ts';
import { yieldToEventLoop } from '../yielding.ts';
import { requireToContainNow } from './contain.ts';
import { leakedSince, requireRotating, requireToRollBack, requireToRotate } from './rotate.ts';
import { type Place, requireToUpdate } from './transaction.ts';
import { planSwitch, requireToDelete } from './update.ts';

/** What can be done to a key, each as it is asked for. */
export const KEY_CHANGES = [
  'UPDATE',
  'ENABLE',
  'DISABLE',
  'ROTATE',
  'ROTATE_AND_DISABLE_CREATED',
  'ACTIVATE_ROTATION',
  'FINISH_ROTATION',
  'ROLL_BACK_ROTATION',
  'DELETE',
  'CONTAIN',
] as const;
/** One of `KEY_CHANGES`. */
export type KeyChangeKind = (typeof KEY_CHANGES)[number];

/** Why something would be refused. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly reason: string;
}

/** Whether a change of a key would be made now. */
export interface PossibleChange {
  readonly change: KeyChangeKind;
  /** Null if it would be made. */
  readonly refusal: Refusal | null;
}

/** Where changes are decided beforehand. */
export type PlaceBefore = Omit<Place, 'find'> & { readonly find: KeyRepository };

/** How many created keys are looked at at a time. */
const PAGE = 100;
/** How many such pages: a request may ask for many keys, and each may have created any number. */
const MAX_PAGES = 5;

/** What refuses each change: the rules by which it is made. */
const RULES: Readonly<Record<KeyChangeKind, (place: PlaceBefore, key: ApiKey) => void | Promise<unknown>>> = {
  UPDATE: requireWholeToUpdate,
  ENABLE: (place, key) => changed(place, key, () => planSwitch(withoutIt(place, key), asDisabled(key, place), true)),
  DISABLE: (place, key) => changed(place, key, () => planSwitch(place, key, false)),
  ROTATE: (place, key) => changed(place, key, () => requireToRotate(place, key)),
  ROTATE_AND_DISABLE_CREATED: (place, key) =>
    changed(place, key, async () => {
      await requireToRotate(place, key);
      await requireToDisableCreated(place, key);
    }),
  ACTIVATE_ROTATION: requireWholeToUpdate,
  FINISH_ROTATION: (place, key) => changed(place, key, () => requireRotating(key, place.now)),
  ROLL_BACK_ROTATION: (place, key) => changed(place, key, () => requireToRollBack(place, key)),
  DELETE: (place, key) => requireToDelete(place, [key]),
  CONTAIN: requireToContainNow,
};

/**
 * Tells for each change of a key whether it would be made now, by the rules that decide when it is asked for. Nothing
 * is written.
 * @throws KeysError STORE_…
 */
export async function findPossibleChanges(place: PlaceBefore, key: ApiKey): Promise<PossibleChange[]> {
  const decided: PossibleChange[] = [];
  for (const change of KEY_CHANGES)
    decided.push({ change, refusal: await findRefusal(async () => void (await RULES[change](place, key))) });
  return decided;
}

/** Why something is refused; null if it is not. @throws what is no refusal, such as KeysError STORE_… */
export async function findRefusal(attempt: () => void | Promise<void>): Promise<Refusal | null> {
  try {
    await attempt();
    return null;
  } catch (error) {
    if (!isKeysError(error) || (error.code.startsWith('STORE_') && error.code !== 'STORE_CORRUPT')) throw error;
    return { code: error.code, reason: error.message };
  }
}

/** A key as it is once it is disabled. */
function asDisabled(key: ApiKey, { now }: PlaceBefore): ApiKey {
  return key.disabledAt === null ? { ...key, disabledAt: now } : key;
}

/** The place as it is once a key is disabled: it is not live any more. */
function withoutIt(place: PlaceBefore, key: ApiKey): PlaceBefore {
  if (statusOf(key, place.now) !== 'ACTIVE') return place;
  const countLive = async (creator: string, now: number) =>
    (await place.find.countLive(creator, now)) - (creator === key.createdBy ? 1 : 0);
  return { ...place, find: { ...place.find, countLive } };
}

function requireWholeToUpdate(place: PlaceBefore, key: ApiKey): void {
  requireToUpdate(place, [key]);
  requireWhole(key);
}

async function changed(place: PlaceBefore, key: ApiKey, rule: () => unknown): Promise<void> {
  requireToUpdate(place, [key]);
  await rule();
  requireWhole(key);
}

/**
 * For all keys that a key has created the same counts, but for the caller itself: what two of them allow, all do. Where
 * it does not, only those count that are enabled. Among very many there may be one: what may be refused is refused.
 */
async function requireToDisableCreated(place: PlaceBefore, { id }: ApiKey): Promise<void> {
  let after: { createdAt: number; id: string } | undefined;
  for (let pages = 1; ; pages += 1) {
    const page = await place.find.listCreatedBy([id], { limit: PAGE, after });
    const refusal = await findRefusal(() => requireToUpdate(place, page));
    if (!refusal && page.length > 1) return;
    requireToUpdate(place, pages < MAX_PAGES ? leakedSince(page, 0) : page);
    if (page.length < PAGE) return;
    after = page.at(-1);
    await yieldToEventLoop();
  }
}
