import {
  type Actor,
  type Chain,
  findChain,
  findChains,
  mayFor,
  OPERATOR,
  type Principal,
  requireFor,
  requirePermission,
  requireToHoldKey,
  uses,
} from '../../keys/authorization/index.ts';
import {
  checkSearchText,
  formatTime,
  isKeysError,
  KeysError,
  printable,
  notPassed,
  requirePastTime,
  yielding,
} from '../../keys/basics/index.ts';
import {
  type ApiKey,
  type FieldChange,
  fieldChanges,
  isInProgress,
  normalizeName,
  type PlannedChange,
  rolledBackKey,
  type StoredKey,
  withoutDigests,
} from '../../keys/key/index.ts';
import { type ConsentRequest, CONSENTS, MAX_REQUESTS, requestEntry } from '../consent/consent-request.ts';
import { createSecret, prefixOf, type Secret } from '../../keys/secret/index.ts';
import { type Effect, type EffectFinder, EFFECTS, mayBeInForce } from './effects.ts';
import {
  type Issued,
  type KeyName,
  type NamedIssue,
  namedIssues,
  type Parts,
  type Place,
  refreshed,
  type Transaction,
} from '../../keys/changes/index.ts';
import { withoutWidening } from './widening.ts';

/** The key to contain, and the time from which its changes are undone. */
interface WhatToContain {
  /** The id of a key that is there, or was. */
  readonly id: string;
  /** In milliseconds since 1970; 0 for all of it. */
  readonly since: number;
}

/** A key as it is, and as it is to be. */
export interface Containing<Key extends ApiKey> {
  readonly before: Key;
  /** Its new state, except for its secrets. */
  readonly after: Key;
  /**
   * Change of its secrets: only the previous one remains, the previous one is revoked, or the only one is. Undefined
   * for no change.
   */
  readonly secrets: 'ROLL_BACK' | 'FINISH' | 'END' | undefined;
}

/** The effects of containing a key. */
export interface Containment<Key extends ApiKey = ApiKey> {
  /** The key, by its latest name. */
  readonly contained: Pick<ApiKey, 'id' | 'name'>;
  /** It still exists. */
  readonly exists: boolean;
  /** Changes it made to others, oldest first. */
  readonly issued: Issued<Key>[];
  /** The keys that change: the contained one first, and its child keys. */
  readonly changes: Containing<Key>[];
  /** Requests it approved, whose applications then get no key. */
  readonly requests: ConsentRequest[];
}

/** Undoes what keys did. */
export class Containments {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * Tells what `contain` would do now; nothing is written.
   * @param nameOrId of a key that is there, or was
   * @param since as in `AuditRequest`; undefined for all that it ever did to others
   * @throws KeysError NOT_FOUND, INPUT_INVALID; ForbiddenError; a STORE_ error
   */
  async plan(nameOrId: string, since: string | undefined, actor: Actor): Promise<Containment> {
    const { repository, catalog, clock, listeners } = this.#options;
    const now = clock();
    const caller: Actor = actor === OPERATOR ? OPERATOR : await refreshed(actor, repository, { catalog, now });
    const place = { caller, catalog, now, find: repository, listeners };
    const from = since === undefined ? 0 : requirePassedTime(since, now);
    const plan = await planContainment(place, { id: await findToContain(place, nameOrId), since: from });
    return shownContainment(plan, caller);
  }

  /**
   * Undoes the changes a key made, in one transaction: disables it with all its child keys, revokes the secrets it
   * issued, removes the permissions it added, and disables the keys it enabled. Covers all changes still in effect.
   * @param nameOrId of a key that exists or existed
   * @param since as in `AuditRequest`; undefined for all its changes
   */
  async contain(nameOrId: string, since: string | undefined, actor: Actor): Promise<Containment> {
    const now = this.#options.clock();
    const from = since === undefined ? 0 : requirePassedTime(since, now);
    const newSecret = () => createSecret(this.#options.randomBytes, this.#options.catalog.prefix);
    return this.#options.transactions.run(
      actor,
      async (transaction) => {
        const id = await findToContain(transaction, nameOrId);
        return containKey(transaction, { id, since: from }, newSecret);
      },
      { now, revokes: true, isUndoing: true },
    );
  }
}

/** All that some keys have brought about. */
interface Reach {
  readonly effects: Effect[];
  readonly created: Set<string>;
  /** The public ids of the secrets that they issued. */
  readonly secrets: Set<string>;
  /** Checks whether a key is one of them, a child of theirs, or descends from a key created that way. */
  readonly isWithin: (chain: Pick<Chain, 'keys'>) => boolean;
}

/** A key that something was done to that is in force. */
interface Affected<Key extends ApiKey> {
  readonly key: Key;
  readonly effects: Effect[];
  readonly isWithin: boolean;
}

/**
 * Finds effects of keys on others that are still in effect, oldest first: including those of their child keys and of
 * secrets they issued, as far as the caller can see the others. Effects on child keys are left out, because these
 * change with them.
 * @param since in milliseconds since 1970
 */
export async function findIssued<Key extends ApiKey>(
  place: Place<Key>,
  ids: readonly string[],
  since: number,
): Promise<Issued<Key>[]> {
  const reach = await findReach(place.find.port(EFFECTS), ids, since);
  const issued = issuedBy(await findAffected(place, reach), await findApproved(place, reach, since));
  return readable(issued, place.caller);
}

function readable<Key extends ApiKey>(issued: readonly Issued<Key>[], caller: Actor): Issued<Key>[] {
  return issued.filter(({ apiKey }) => (apiKey ? mayFor(caller, 'READ', apiKey) : readsRequests(caller)));
}

function readsRequests(caller: Actor): boolean {
  return caller === OPERATOR || uses(caller, 'API_KEY', 'CREATE_ANY');
}

function issuedBy<Key extends ApiKey>(
  affected: readonly Affected<Key>[],
  approved: readonly ConsentRequest[],
): Issued<Key>[] {
  const issued = affected.flatMap(({ key, effects }): Issued<Key>[] =>
    effects.map(({ kind: what, at }) => ({ name: key.name, apiKey: key, what, at })),
  );
  const agreed = approved.map(({ approval }): Issued<Key> => ({
    name: approval!.keyName,
    apiKey: null,
    what: 'APPROVAL',
    at: approval!.at,
  }));
  // A key that is adopted while it has two secrets is one thing.
  const all = new Map([...issued, ...agreed].map((one) => [JSON.stringify([one.name, one.what, one.at]), one]));
  return [...all.values()].toSorted((one, other) => one.at - other.at);
}

/** Goes from key to secret to key, until nothing new is found. */
async function findReach(finder: EffectFinder, roots: readonly string[], since: number): Promise<Reach> {
  const effects = new Map<string, Effect>();
  const created = new Set<string>();
  const secrets = new Set<string>();
  let next = (await finder.by(roots)).filter(({ at }) => at >= since);
  while (next.length > 0) {
    for (const effect of next) effects.set(effect.id, effect);
    const keys = next.flatMap(({ kind, keyId }) => (kind === 'CREATION' && !created.has(keyId) ? [keyId] : []));
    const issued = next.flatMap(({ secret }) => (secret === null || secrets.has(secret) ? [] : [secret]));
    for (const id of keys) created.add(id);
    for (const secret of issued) secrets.add(secret);
    next = [...(await finder.by(keys)), ...(await finder.withSecrets(issued))].filter(({ id }) => !effects.has(id));
  }
  const isWithin = ({ keys }: Pick<Chain, 'keys'>) => keys.some(({ id }) => created.has(id) || roots.includes(id));
  const inOrder = [...effects.values()].toSorted((one, other) => one.at - other.at);
  return { effects: inOrder, created, secrets, isWithin };
}

/** Affected keys in that order, except for keys that are contained anyway. */
async function findAffected<Key extends ApiKey>(
  { find, catalog, now }: Place<Key>,
  { effects, isWithin }: Reach,
): Promise<Affected<Key>[]> {
  const found = await find.findBy('id', [...new Set(effects.map(({ keyId }) => keyId))]);
  const chains = await findChains(find, found);
  const affected = found.flatMap((key, index) => {
    const isContained = isWithin(chains[index]!);
    const inForce = effects.filter((effect) => {
      if (effect.keyId !== key.id || !mayBeInForce(effect, key, catalog)) return false;
      if (effect.kind === 'CREATION') return true;
      if (isContained) return false;
      return effect.secret === null || effect.secret === key.publicId || isInProgress(key.rotation, now);
    });
    return inForce.length > 0 ? [{ key, effects: inForce, isWithin: isContained }] : [];
  });
  return affected.toSorted((one, other) => one.effects[0]!.at - other.effects[0]!.at);
}

/** Requests that such keys approved and that have no key yet. */
async function findApproved(
  { find, now }: Place,
  { secrets, isWithin }: Reach,
  since: number,
): Promise<ConsentRequest[]> {
  const open = await find.port(CONSENTS).listOpen(now, MAX_REQUESTS);
  const approved = open.filter(({ approval }) => approval && approval.by.id !== null && approval.at >= since);
  const approvers = await find.findBy('id', [...new Set(approved.map(({ approval }) => approval!.by.id!))]);
  const chains = await findChains(find, approvers);
  const within = new Set(chains.filter(isWithin).map(({ keys: [{ id }] }) => id));
  return approved.filter(({ approval }) => within.has(approval!.by.id!) || secrets.has(approval!.by.publicId!));
}

/**
 * Plans containing a key, without changing anything: it is disabled with all its child keys, and their changes to
 * others are undone. No key gets more permissions than it has now or had before.
 * @throws KeysError NOT_FOUND; ForbiddenError for callers who may not delete and disable all of these
 */
async function planContainment<Key extends ApiKey>(
  place: Place<Key>,
  { id, since }: WhatToContain,
): Promise<Containment<Key>> {
  const { find, now } = place;
  const effects = find.port(EFFECTS);
  const root = await find.findById(id);
  const contained = root ?? (await effects.actorsNamed(id)).find((actor) => actor.id === id);
  if (!contained) throw unknown(id);
  const reach = await findReach(effects, [id], since);
  const affected = await findAffected(place, reach);
  requireToContain(place, { key: root, others: affected.map(({ key }) => key) });
  const changes: Containing<Key>[] = [];
  const family = await find.findWithDescendants([id, ...reach.created]);
  const chains = await findChains(find, family);
  for await (const [index, key] of yielding(family.entries()))
    if (!key.damaged && key.disabledAt === null && reach.isWithin(chains[index]!))
      changes.push({ before: key, after: { ...key, disabledAt: now }, secrets: undefined });
  for (const { key, effects: done, isWithin } of affected) {
    const change = key.damaged || isWithin ? undefined : await takeBack(place, key, done, reach.secrets);
    if (change) changes.push(change);
  }
  const requests = await findApproved(place, reach, since);
  const issued = issuedBy(affected, requests);
  return { contained: { id, name: contained.name }, exists: root !== undefined, issued, changes, requests };
}

/**
 * Requires permission to contain a key: to delete and disable it, its child keys, and the others that it changed.
 * @throws ForbiddenError
 */
function requireToContain(
  { caller }: Pick<Place, 'caller'>,
  { key, others }: { key: ApiKey | undefined; others: readonly ApiKey[] },
): void {
  if (caller === OPERATOR) return;
  const keys = key ? [key, ...others] : others;
  requireFor(caller, 'UPDATE', keys);
  requireFor(caller, 'DELETE', keys);
  // The owner of a deleted key is unknown, so require permission for any key.
  if (!key) for (const action of ANY) requirePermission(caller, 'API_KEY', action);
}

/** Requires permission to contain a key now. @throws ForbiddenError */
export async function requireToContainNow(place: Place, key: ApiKey): Promise<void> {
  const affected = await findAffected(place, await findReach(place.find.port(EFFECTS), [key.id], 0));
  requireToContain(place, { key, others: affected.map((one) => one.key) });
}

const ANY = ['UPDATE_ANY', 'DELETE_ANY'] as const;

function mayContainAll(caller: Principal): boolean {
  return ANY.every((action) => uses(caller, 'API_KEY', action));
}

/** The new state of an affected key; undefined for no change. */
async function takeBack<Key extends ApiKey>(
  place: Place<Key>,
  before: Key,
  effects: readonly Effect[],
  issued: ReadonlySet<string>,
): Promise<Containing<Key> | undefined> {
  const { catalog, now } = place;
  const { rotation, publicId } = before;
  let after = before;
  let ends = effects.some(({ kind }) => kind === 'ENABLING');
  for (const { widening } of effects) {
    if (!widening) continue;
    const { key, leavesNothing } = withoutWidening(after, widening, catalog);
    after = key;
    ends ||= leavesNothing;
  }
  const previous = isInProgress(rotation, now) ? rotation.previousPublicId : undefined;
  let secrets: Containing<Key>['secrets'];
  if (issued.has(publicId)) {
    const isOwn = previous !== undefined && !issued.has(previous);
    secrets = isOwn && (await mayRestore(place, after)) ? 'ROLL_BACK' : 'END';
    ends ||= secrets === 'END';
  } else if (previous !== undefined && issued.has(previous)) secrets = 'FINISH';
  if (ends && after.disabledAt === null) after = { ...after, disabledAt: now };
  const isSame = secrets === undefined && fieldChanges(before, after).length === 0;
  return isSame ? undefined : { before, after, secrets };
}

/** Restoring a previous secret requires all permissions of the key; otherwise the key is disabled. */
async function mayRestore({ caller, find, catalog }: Place, key: ApiKey): Promise<boolean> {
  if (caller === OPERATOR) return true;
  const chain = await findChain(find, key);
  try {
    // Nothing is refused to it for that.
    requireToHoldKey(caller.observedBy(undefined), chain, key, catalog);
    return true;
  } catch (error) {
    if (isKeysError(error) && error.code === 'FORBIDDEN') return false;
    throw error;
  }
}

/**
 * Contains a key, by a plan made now.
 * @param newSecret creates a secret without a holder, to replace a revoked one
 * @throws what `planContainment` throws
 */
async function containKey(
  transaction: Transaction,
  request: WhatToContain,
  newSecret: () => Secret,
): Promise<Containment> {
  const plan = await planContainment(transaction, request);
  const { contained, changes, requests } = plan;
  if (changes.length + requests.length === 0) return shownContainment(plan, transaction.caller);
  const of = (secrets: Containing<ApiKey>['secrets']) => changes.filter((change) => change.secrets === secrets).length;
  const after = {
    since: request.since === 0 ? null : formatTime(request.since),
    keys: changes.length,
    secretsEnded: of('END') + of('FINISH') + of('ROLL_BACK'),
    secretsRestored: of('ROLL_BACK'),
    requests: requests.length,
  };
  transaction.note({ action: 'CONTAIN', key: contained, after });
  for (const { before, after, secrets } of changes) {
    const narrowed = { ...after, disabledAt: before.disabledAt };
    await transaction.change(before, narrowed, 'UPDATE');
    const changed = withSecrets(narrowed, secrets, newSecret);
    await transaction.change(narrowed, changed, ACTIONS[secrets ?? 'FINISH']);
    const { disabledAt } = after;
    await transaction.change(changed, { ...changed, disabledAt }, 'DISABLE');
  }
  for (const asked of requests) {
    await transaction.port(CONSENTS).update({ ...asked, status: 'DENIED' });
    transaction.note(requestEntry('CONSENT_DENY', asked, { values: { from: asked.address } }));
  }
  return shownContainment(plan, transaction.caller);
}

function shownContainment(
  { issued, changes, requests, ...plan }: Containment<ApiKey | StoredKey>,
  caller: Actor,
): Containment {
  return {
    ...plan,
    issued: readable(issued, caller).map(({ apiKey, ...others }) => ({
      ...others,
      apiKey: apiKey && withoutDigests(apiKey),
    })),
    changes: changes
      .filter(({ before }) => mayFor(caller, 'READ', before))
      .map(({ before, after, secrets }) => ({ before: withoutDigests(before), after: withoutDigests(after), secrets })),
    requests: readsRequests(caller) ? requests : [],
  };
}

/** Audit action of the command that would make the same change. */
const ACTIONS = { ROLL_BACK: 'ROTATE_ROLLBACK', FINISH: 'ROTATE_FINISH', END: 'ROTATE' } as const;

function withSecrets(key: StoredKey, secrets: Containing<ApiKey>['secrets'], newSecret: () => Secret): StoredKey {
  if (secrets === undefined) return key;
  if (secrets === 'ROLL_BACK') return rolledBackKey(key);
  const single = { ...key, rotation: null, previousDigest: null };
  if (secrets === 'FINISH') return single;
  const { publicId, digest } = newSecret();
  return { ...single, publicId, digest };
}

export function containedFields({ before, after, secrets }: Containing<ApiKey>): FieldChange[] {
  const current = prefixOf(before.publicId);
  const previous = before.rotation && prefixOf(before.rotation.previousPublicId);
  const prefix = { field: 'prefix', before: current, after: secrets === 'ROLL_BACK' ? previous : null } as const;
  return [
    ...fieldChanges(before, after),
    ...(secrets === 'END' || secrets === 'ROLL_BACK' ? [prefix] : []),
    ...(secrets !== undefined && previous !== null
      ? [{ field: 'previousPrefix', before: previous, after: null } as const]
      : []),
  ];
}

/**
 * The key that is to be contained: one that is there, or was, by its name or id.
 * @throws KeysError NOT_FOUND; INPUT_INVALID where several had that name
 */
async function findToContain({ find, caller }: Pick<Place, 'find' | 'caller'>, nameOrId: string): Promise<string> {
  checkSearchText(nameOrId);
  const wanted = normalizeName(nameOrId);
  const seesAll = caller === OPERATOR || uses(caller, 'API_KEY', 'READ_ANY') || mayContainAll(caller);
  const named = await find.findByName(wanted);
  const key = named && mayFor(caller, 'READ', named) ? named : await find.findById(nameOrId);
  const recorded = seesAll ? await find.port(EFFECTS).actorsNamed(wanted) : [];
  const candidates = new Map((key ? [key, ...recorded] : recorded).map(({ id }) => [id, id === key?.id]));
  const there = await find.findBy('id', [...candidates.keys()]);
  for (const { id } of there) if (id !== key?.id) candidates.delete(id);
  const ids = candidates.has(nameOrId) ? [nameOrId] : [...candidates.keys()];
  if (ids.length === 0) throw unknown(nameOrId);
  if (ids.length === 1) return ids[0]!;
  const which = ids.map((id) => `${id} (${candidates.get(id) ? 'there now' : 'deleted'})`).join(', ');
  throw new KeysError(
    'INPUT_INVALID',
    `Several API keys have had the name "${printable(wanted)}": ${which}. Pass the id of the one to contain.`,
  );
}

function unknown(nameOrId: string): KeysError {
  return new KeysError(
    'NOT_FOUND',
    `There is no API key with the name or id "${printable(nameOrId)}", and no changes of a deleted one are in effect.`,
  );
}

/** The outcome of containing a key, as callers get it. */
export interface Contained {
  readonly apiKey: KeyName;
  /** The key still exists. */
  readonly exists: boolean;
  readonly issued: readonly NamedIssue[];
  /** The keys that change, the contained one first. */
  readonly changes: readonly PlannedChange[];
  /** The requests of applications that get no key, with the name that it was to have. */
  readonly requests: readonly { readonly id: string; readonly client: string; readonly keyName: string }[];
}

/** The same for callers. */
export function containedAs({ contained, exists, issued, changes, requests }: Containment): Contained {
  return {
    apiKey: contained,
    exists,
    issued: namedIssues(issued),
    changes: changes.map((change) => {
      const { id, name } = change.before;
      return { action: 'UPDATE', name, id, changes: containedFields(change) };
    }),
    requests: requests.map(({ id, client, approval }) => ({ id, client: client.name, keyName: approval!.keyName })),
  };
}

/** Like `requirePastTime`, for a time that `notPassed` accepts. @throws KeysError INPUT_INVALID */
function requirePassedTime(text: string, now: number): number {
  const time = requirePastTime(text, now);
  const problem = notPassed(text, time, now);
  if (problem === undefined) return time;
  throw new KeysError('INPUT_INVALID', problem);
}
