import { type Actor, mayFor, OPERATOR, type Principal, requireFor } from '../authorization/index.ts';
import { type ErrorCode, isKeysError, yielding, yieldToEventLoop } from '../basics/index.ts';
import { type ApiKey, requireWhole, statusOf } from '../key/index.ts';
import type { KeyRepository } from '../repository/index.ts';
import { type ManyChangeRequest, type Reach, reachOf, readManyChange, requireToChangeBy } from './change-many.ts';
import { leakedSince, requireRotating, requireToRollBack, requireToRotate } from './rotate.ts';
import { type ChangeRule, type Parts, type Place, refreshed } from './transaction.ts';
import { planSwitch } from './update.ts';

/** The reason of a refusal. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly reason: string;
}

/** A change of a key, and whether it would be refused now. */
export interface PossibleChange {
  /** A `KeyChangeKind`, or the name of a rule of a listener. */
  readonly change: string;
  /** Null if the change is allowed. */
  readonly refusal: Refusal | null;
}

/** The state that changes are checked against in advance. */
export type PlaceBefore = Omit<Place, 'find'> & { readonly find: KeyRepository };

const PAGE = 100;
/** The number of pages read: a request can ask for many keys, each of which may have created any number of keys. */
const MAX_PAGES = 5;

/** The rules that refuse each change when it is made. */
const RULES = {
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
  DELETE: (place, key) => requireFor(place.caller, 'DELETE', [key]),
} satisfies Record<string, (place: PlaceBefore, key: ApiKey) => void | Promise<unknown>>;

/** A change of a key that can be checked in advance. */
export type KeyChangeKind = keyof typeof RULES;

/** Why an attempt is refused; null if it is not. @throws errors that are no refusals, such as KeysError STORE_… */
export async function findRefusal(attempt: () => void | Promise<void>): Promise<Refusal | null> {
  try {
    await attempt();
    return null;
  } catch (error) {
    if (!isKeysError(error) || (error.code.startsWith('STORE_') && error.code !== 'STORE_CORRUPT')) throw error;
    return { code: error.code, reason: error.message };
  }
}

/** A key after it is disabled. */
function asDisabled(key: ApiKey, { now }: PlaceBefore): ApiKey {
  return key.disabledAt === null ? { ...key, disabledAt: now } : key;
}

/** The place after a key is disabled, without that key among the live ones. */
function withoutIt(place: PlaceBefore, key: ApiKey): PlaceBefore {
  if (statusOf(key, place.now) !== 'ACTIVE') return place;
  const countLive = async (creator: string, now: number) =>
    (await place.find.countLive(creator, now)) - (creator === key.createdBy ? 1 : 0);
  return { ...place, find: { ...place.find, countLive } };
}

function requireWholeToUpdate(place: PlaceBefore, key: ApiKey): void {
  requireFor(place.caller, 'UPDATE', [key]);
  requireWhole(key);
}

async function changed(place: PlaceBefore, key: ApiKey, rule: () => unknown): Promise<void> {
  requireFor(place.caller, 'UPDATE', [key]);
  await rule();
  requireWhole(key);
}

/**
 * The same rules apply to all keys that a key has created, except the caller itself: if two of them pass, all do. Where
 * they do not, only enabled keys count. If there are too many to look at, the change counts as refused.
 */
async function requireToDisableCreated(place: PlaceBefore, { id }: ApiKey): Promise<void> {
  let after: { createdAt: number; id: string } | undefined;
  for (let pages = 1; ; pages += 1) {
    const page = await place.find.listCreatedBy([id], { limit: PAGE, after });
    const refusal = await findRefusal(() => requireFor(place.caller, 'UPDATE', page));
    if (!refusal && page.length > 1) return;
    requireFor(place.caller, 'UPDATE', pages < MAX_PAGES ? leakedSince(page, 0) : page);
    if (page.length < PAGE) return;
    after = page.at(-1);
    await yieldToEventLoop();
  }
}

/** The effects of a change of many keys. */
export interface ManyChangePlan<Key = ApiKey> extends Reach {
  /** The keys that it changes. */
  readonly changing: readonly Key[];
  /** The keys that are already in that state. */
  readonly unchanged: readonly Key[];
  /** The keys that the actor is not allowed to change like this. */
  readonly refused: readonly { readonly key: Key; readonly refusal: Refusal }[];
}

/** The place for decisions in advance, with queries that several keys need done once. */
export async function findPlace<Who extends Actor>(
  { repository, catalog, clock, listeners }: Parts,
  actor: Who,
  keys: readonly ApiKey[],
): Promise<(PlaceBefore & { readonly caller: Who }) | { refusal: Refusal }> {
  const now = clock();
  let caller = actor;
  const refusal = await findRefusal(async () => {
    if (actor === OPERATOR) return;
    const { apiKey, secret } = actor;
    caller = (await refreshed({ apiKey, secret }, repository, { catalog, now })) as Who;
  });
  if (refusal) return { refusal };
  const creators = [...new Set(keys.flatMap(({ createdBy }) => createdBy ?? []))];
  const ancestors = creators.length > 0 ? await repository.findAncestors(creators) : new Map<string, ApiKey>();
  const counts = new Map<string, Promise<number>>();
  const countLive = (creator: string, at: number) => {
    const count = counts.get(creator) ?? repository.countLive(creator, at);
    counts.set(creator, count);
    return count;
  };
  const find = { ...repository, findAncestors: async () => ancestors, countLive };
  return { caller, catalog, now, find, listeners };
}

/** Finds out in advance what an actor is allowed to do now. Nothing is written, and nothing counts as used. */
export class PermittedChanges {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * For each of these keys, the changes that an actor is allowed to make now, by the same rules that decide when they
   * are made. Nothing is written, and nothing counts as used.
   * @throws KeysError STORE_…
   */
  async possibleChanges(keys: readonly ApiKey[], actor: Principal): Promise<PossibleChange[][]> {
    const place = await findPlace(this.#options, actor, keys);
    const own = this.#options.listeners.map(({ rules }) => rules);
    // A rule of a listener takes no place of ours, which come first.
    const rules = Object.entries<ChangeRule | (typeof RULES)[KeyChangeKind]>(Object.assign({}, RULES, ...own, RULES));
    const decided: PossibleChange[][] = [];
    for (const key of keys) {
      const changes: PossibleChange[] = [];
      for (const [change, rule] of rules) {
        const refusal =
          'refusal' in place
            ? place.refusal
            : await findRefusal(async () => {
                await rule(place, key);
              });
        changes.push({ change, refusal });
      }
      decided.push(changes);
    }
    return decided;
  }

  /**
   * The effects of a change of many keys. Ids of keys that the actor cannot read, or that do not exist, are ignored.
   * Nothing is written.
   * @throws ValidationError; KeysError INPUT_INVALID, STORE_…
   */
  async planOf(ids: readonly string[], request: ManyChangeRequest, actor: Actor): Promise<ManyChangePlan> {
    const { repository, catalog, clock, listeners } = this.#options;
    const change = readManyChange(request, { catalog, now: clock(), listeners });
    const found = await repository.findBy('id', [...new Set(ids)]);
    const byId = new Map(found.map((key) => [key.id, key]));
    const keys = [...new Set(ids)].flatMap((id) => byId.get(id) ?? []).filter((key) => mayFor(actor, 'READ', key));
    const place = await findPlace(this.#options, actor, keys);
    const plan: Record<'changing' | 'unchanged', ApiKey[]> = { changing: [], unchanged: [] };
    const refused: ManyChangePlan['refused'][number][] = [];
    for await (const key of yielding(keys)) {
      let isChanged = true;
      const refusal = await findRefusal(async () => {
        const after = await change.after(key);
        isChanged = change.what === 'DELETE' || after !== key;
        if (isChanged && !('refusal' in place)) await requireToChangeBy(place, key, change.what, after);
      });
      const why = refusal ?? (isChanged && 'refusal' in place ? place.refusal : null);
      if (why) refused.push({ key, refusal: why });
      else plan[isChanged ? 'changing' : 'unchanged'].push(key);
    }
    return {
      ...plan,
      refused,
      ...(await reachOf(
        repository,
        plan.changing.map(({ id }) => id),
      )),
    };
  }
}
