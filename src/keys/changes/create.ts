import {
  type Actor,
  chainExpiry,
  denied,
  mayFor,
  OPERATOR,
  type Principal,
  requireFor,
  requirePolicy,
  requireToCreate,
  requireToLoosen,
  violationsByCount,
  violationsOfNew,
} from '../authorization/index.ts';
import { isBudgetUnit, KeysError, NameTakenError, SPENT_LIMITS, type SpentLimit } from '../basics/index.ts';
import {
  type ApiKey,
  BARE_KEY,
  describeLikeness,
  expiryOf,
  type GivenFields,
  MAX_NAME_LENGTH,
  normalizeName,
  RESTRICTION_FIELDS,
  type NewKey,
  readNewFields,
  requireNoPerson,
  computeSkeleton,
  type StoredKey,
  validateName,
} from '../key/index.ts';
import type { Catalog, Permission } from '../permissions/index.ts';
import { CONSENTS, type KeyFinder } from '../repository/index.ts';
import { createPersonId, type RandomBytes, type Secret } from '../secret/index.ts';
import type { Place, Transaction } from './transaction.ts';

interface Creation<Replaced extends ApiKey = StoredKey> {
  key: StoredKey;
  /** What is deleted for it: the key of the same name first, then the keys that this one had created. */
  replaced: Replaced[];
  /** Whether the key replaces itself: it then has its own creator, its application, and the request that gave it. */
  takesOwnPlace: boolean;
  /** The name, if it is new and looks like others. */
  confusable: ConfusableName[];
}

/** A creation that was made. */
interface Created extends Creation {
  /** What had been used up of the limits of what was deleted. */
  spent: readonly SpentLimit[];
  /** The applications that had been given what was deleted, by the ids of the keys. */
  clients: ReadonlyMap<string, string>;
}

/** What a creation would make, without an id and a secret. */
export interface KeyPreview extends GivenFields {
  /** Everything that the roles and permissions allow together. */
  effectivePermissions: Permission[];
  /** The keys that would be deleted for it, as in `Creation`. */
  replaced: ApiKey[];
  /** The name, if it is new and looks like others. */
  confusable: ConfusableName[];
}

/** Builds a key from a validated request. Its creator is known when it is created. */
export function buildKey(
  input: NewKey,
  {
    catalog,
    now,
    id,
    secret,
    audience = null,
  }: { catalog: Catalog; now: number; id: string; secret: Secret; audience?: string | null | undefined },
): StoredKey {
  return {
    ...BARE_KEY,
    id,
    ...readNewFields(input, catalog),
    audience,
    publicId: secret.publicId,
    createdAt: now,
    expiresAt: expiryOf(input, now) ?? null,
    digest: secret.digest,
  };
}

/**
 * Checks whether the caller may create a key, and tells what that would do.
 * @throws NameTakenError; KeysError NAME_CONFUSABLE, POLICY_VIOLATED; ForbiddenError
 */
export async function planCreation<Key extends ApiKey>(
  place: Place<Key>,
  input: NewKey,
  built: StoredKey,
): Promise<Creation<Key>> {
  const creation = await planReplacement(place, input, built);
  const { key, replaced } = creation;
  const tooMany = await violationsByCount(place.find, { added: [key], removed: replaced }, place);
  requirePolicy([...violationsOfNew(key, place), ...tooMany]);
  return creation;
}

async function planReplacement<Key extends ApiKey>(
  { caller, find, catalog, now }: Place<Key>,
  input: NewKey,
  built: StoredKey,
): Promise<Creation<Key>> {
  const key = { ...built };
  if (caller !== OPERATOR) {
    key.createdBy = caller.apiKey.id;
    // Without a requested expiry, a key expires with the one that creates it.
    if (expiryOf(input, now) === undefined) key.expiresAt = chainExpiry(caller.chain);
  }
  requireToCreate(caller, key, catalog);
  const existing = await find.findByName(key.name);
  if (existing && !input.overwrite) throw new NameTakenError(key.name, existing.person === null);
  if (!existing) {
    const confusable = await findConfusableNames(caller, find, [key.name]);
    return { key, replaced: [], takesOwnPlace: false, confusable };
  }
  const replaced = await find.findWithDescendants([existing.id]);
  requireFor(caller, 'DELETE', [existing]);
  requireNoPerson(existing);
  const takesOwnPlace = caller !== OPERATOR && existing.id === caller.apiKey.id;
  if (takesOwnPlace) takeOwnPlace(caller, input, key, catalog);
  // It would take the place of that key, and its creator: it would have no parent key any more.
  else if (caller !== OPERATOR && replaced.some(({ id }) => id === key.createdBy))
    throw denied(caller, 'A key cannot replace one that it descends from. Rotate that key, or choose another name.');
  return { key, replaced, takesOwnPlace, confusable: [] };
}

/** A key that replaces itself: its parent keys still hold the new one, but it no longer does so itself. */
function takeOwnPlace(caller: Principal, input: NewKey, key: StoredKey, catalog: Catalog): void {
  const { chain } = caller;
  const [own] = chain.keys;
  key.createdBy = own.createdBy;
  key.audience = own.audience;
  for (const field of RESTRICTION_FIELDS) if (input[field] === undefined) Object.assign(key, { [field]: own[field] });
  requireToLoosen(caller, chain, key, catalog);
}

/**
 * Creates a key, and deletes what it replaces. What that has used up of its limits, the new key has used up, too; a
 * budget begins anew, unless a key gives it to itself.
 * @throws what `planCreation` throws
 */
export async function createKey(transaction: Transaction, input: NewKey, built: StoredKey): Promise<Created> {
  const creation = await planCreation(transaction, input, built);
  const { key, takesOwnPlace } = creation;
  const [replaced] = creation.replaced;
  const spent = await transaction.port(SPENT_LIMITS).find(creation.replaced.map(({ id }) => id));
  const consents = transaction.port(CONSENTS);
  const clients = await consents.clientsOf(creation.replaced.map(({ id }) => id));
  await transaction.delete(creation.replaced);
  await transaction.insert([key], 'CREATE', takesOwnPlace ? replaced : undefined);
  const kept = spent.filter(({ keyId, unit }) => keyId === replaced!.id && (takesOwnPlace || !isBudgetUnit(unit)));
  await transaction.port(SPENT_LIMITS).insert(kept.map((each) => ({ ...each, keyId: key.id })));
  if (takesOwnPlace) {
    const client = clients.get(replaced!.id);
    if (client !== undefined) await consents.rememberClient(key.id, client);
    await consents.replaceGivenKey(replaced!.id, key.id);
  }
  return { ...creation, clients, spent };
}

/** Reverts a creation: the key is deleted, and what it replaced works again, also for the applications that had it. */
export async function revertCreation(
  transaction: Transaction,
  { key, replaced, takesOwnPlace, clients, spent }: Created,
): Promise<void> {
  const created = await transaction.find.findById(key.id);
  // Deleted or replaced meanwhile: somebody else has decided already.
  if (!created) return;
  await transaction.delete([created]);
  const creator = replaced[0]?.createdBy;
  if (creator && !(await transaction.find.findById(creator))) return;
  await transaction.insert(replaced, 'CREATE', takesOwnPlace ? key : undefined);
  await transaction.port(SPENT_LIMITS).insert(spent);
  const consents = transaction.port(CONSENTS);
  for (const [id, client] of clients) await consents.rememberClient(id, client);
  if (takesOwnPlace) await consents.replaceGivenKey(key.id, replaced[0]!.id);
}

/** A new name that looks like others, though it differs from them: see `skeletonOf`. */
export interface ConfusableName {
  name: string;
  /** The names that it looks like, at least one. */
  others: string[];
}

/** What to tell the operator about confusable names: a sentence for each. */
export function warningsOf(confusable: readonly ConfusableName[]): string[] {
  return confusable.flatMap(({ name, others }) => others.map((other) => describeLikeness(name, other)));
}

/**
 * Compares new names with those of all keys, and with one another. The operator is warned; a key may create no name
 * that looks like another.
 * @param except the ids of keys whose names are given up
 * @returns the new names that look like others
 * @throws KeysError NAME_CONFUSABLE for a key
 */
export async function findConfusableNames(
  caller: Actor,
  find: Pick<KeyFinder, 'findConfusable'>,
  names: readonly string[],
  except: ReadonlySet<string> = new Set(),
): Promise<ConfusableName[]> {
  const keys = (await find.findConfusable(names)).filter(({ id }) => !except.has(id));
  const seen = Map.groupBy(keys, ({ name }) => computeSkeleton(name));
  const confusable: ConfusableName[] = [];
  const earlier = new Map<string, string[]>();
  for (const name of names) {
    const skeleton = computeSkeleton(name);
    const holders = (seen.get(skeleton) ?? []).filter((key) => key.name !== name);
    const declared = earlier.get(skeleton) ?? [];
    const others = [...holders.map((key) => key.name), ...declared];
    if (others.length > 0) confusable.push({ name, others });
    const hidden = holders.some((key) => !mayFor(caller, 'READ', key));
    if (others.length > 0 && caller !== OPERATOR) throw confusableError(name, hidden ? undefined : others[0]);
    earlier.set(skeleton, [...declared, name]);
  }
  return confusable;
}

/** How many random characters tell keys of one name apart. */
const MARK_LENGTH = 8;

/**
 * A name that no key has, and that looks like none: what is given, as far as a key can be called so. Where another key
 * is called so, or looks so, something random is behind it: nobody takes the name of another, or is kept out by one.
 * @param otherwise what a key is called where nothing of that is left
 * @param isMarked whether something random is behind it in any case
 */
export async function freeName(
  find: Pick<KeyFinder, 'findByName' | 'findConfusable'>,
  given: string,
  { otherwise, isMarked = false, randomBytes }: { otherwise: string; isMarked?: boolean; randomBytes: RandomBytes },
): Promise<string> {
  const allowed = given
    .normalize('NFC')
    .replaceAll(/[^\p{L}\p{M}\p{Nd} ]+/gu, ' ')
    .replaceAll(/ {2,}/g, ' ');
  const short = normalizeName(
    Array.from(allowed, (character) => character)
      .slice(0, MAX_NAME_LENGTH / 2)
      .join(''),
  );
  const called = validateName(short) ? otherwise : short;
  const marked = () => `${called} ${createPersonId(randomBytes).slice(-MARK_LENGTH)}`;
  for (let name = isMarked ? marked() : called; ; name = marked())
    if (!(await find.findByName(name)) && (await findConfusableNames(OPERATOR, find, [name])).length === 0) return name;
}

/** @param other the name of the other key, if the caller may read it */
function confusableError(name: string, other: string | undefined): KeysError {
  const what =
    other === undefined ? `The name "${name}" looks like that of another API key.` : describeLikeness(name, other);
  return new KeysError('NAME_CONFUSABLE', `${what} Choose another name.`);
}
