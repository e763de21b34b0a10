import {
  chainExpiry,
  denied,
  OPERATOR,
  type Principal,
  requireFor,
  requirePolicy,
  requireToCreate,
  requireToLoosen,
  violationsByCount,
  violationsOfNew,
} from '../authorization/index.ts';
import { NameTakenError } from '../basics/index.ts';
import {
  type ApiKey,
  BARE_KEY,
  expiryOf,
  fixedFields,
  type GivenFields,
  type NewKey,
  readNewFields,
  RESTRICTION_FIELDS,
  type StoredKey,
  valuesOf,
} from '../key/index.ts';
import type { Catalog, Permission } from '../permissions/index.ts';
import type { Secret } from '../secret/index.ts';
import { type ConfusableName, findConfusableNames } from './confusable-names.ts';
import { type Place, refusalOf, type ReplacementSteps, requireUnrefused, type Transaction } from './transaction.ts';

interface Creation<Replaced extends ApiKey = StoredKey> {
  key: StoredKey;
  /** The deleted keys: the one of the same name first, then the keys that it had created. */
  replaced: Replaced[];
  /** True if the key replaces itself, and so keeps its own creator. */
  takesOwnPlace: boolean;
  /** The name, if it is new and looks like other names. */
  confusable: ConfusableName[];
}

/** A completed creation. */
interface Created extends Creation {
  /** Steps of listeners, for reverting it. */
  steps: readonly ReplacementSteps[];
}

/** The key that a creation would make, without an id and a secret. */
export interface KeyPreview extends GivenFields {
  /** Everything that the roles and permissions allow together. */
  effectivePermissions: Permission[];
  /** The keys that would be deleted, as in `Creation`. */
  replaced: ApiKey[];
  /** The name, if it is new and looks like other names. */
  confusable: ConfusableName[];
}

/** Builds a key from a validated request. Its creator is set on creation. */
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
 * Checks that the caller is allowed to create a key, and finds out what the creation would do.
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
  place: Place<Key>,
  input: NewKey,
  built: StoredKey,
): Promise<Creation<Key>> {
  const { caller, find, catalog, now } = place;
  const key = { ...built };
  if (caller !== OPERATOR) {
    key.createdBy = caller.apiKey.id;
    // Without a requested expiry, a key expires with the one that creates it.
    if (expiryOf(input, now) === undefined) key.expiresAt = chainExpiry(caller.chain);
  }
  requireToCreate(caller, key, catalog);
  const existing = await find.findByName(key.name);
  if (existing && !input.overwrite) throw new NameTakenError(key.name, !(await refusalOf(place, existing)));
  if (!existing) {
    const confusable = await findConfusableNames(caller, find, [key.name]);
    return { key, replaced: [], takesOwnPlace: false, confusable };
  }
  const replaced = await find.findWithDescendants([existing.id]);
  requireFor(caller, 'DELETE', [existing]);
  await requireUnrefused(place, existing);
  const takesOwnPlace = caller !== OPERATOR && existing.id === caller.apiKey.id;
  if (takesOwnPlace) takeOwnPlace(caller, input, key, catalog);
  // The new key would take over that key's creator as well, and so escape its own parent key.
  else if (caller !== OPERATOR && replaced.some(({ id }) => id === key.createdBy))
    throw denied(caller, 'A key cannot replace one of its parent keys. Rotate that key, or choose another name.');
  return { key, replaced, takesOwnPlace, confusable: [] };
}

/** Lets a key replace itself: its parent keys still limit the new one, but the old key itself no longer does. */
function takeOwnPlace(caller: Principal, input: NewKey, key: StoredKey, catalog: Catalog): void {
  const { chain } = caller;
  const [own] = chain.keys;
  key.createdBy = own.createdBy;
  Object.assign(key, valuesOf(fixedFields, own));
  for (const field of RESTRICTION_FIELDS) if (input[field] === undefined) Object.assign(key, { [field]: own[field] });
  requireToLoosen(caller, chain, key, catalog);
}

/** Creates a key and deletes the keys that it replaces. @throws the errors of `planCreation` */
export async function createKey(transaction: Transaction, input: NewKey, built: StoredKey): Promise<Created> {
  const creation = await planCreation(transaction, input, built);
  const { key, replaced, takesOwnPlace } = creation;
  const steps = await transaction.replacing({ apiKey: key, replaced, takesOwnPlace });
  await transaction.delete(replaced);
  await transaction.insert([key], 'CREATE', takesOwnPlace ? replaced[0] : undefined);
  for (const step of steps) await step.replaced(transaction);
  return { ...creation, steps };
}

/** Reverts a creation: deletes the key and brings the replaced ones back. */
export async function revertCreation(
  transaction: Transaction,
  { key, replaced, takesOwnPlace, steps }: Created,
): Promise<void> {
  const created = await transaction.find.findById(key.id);
  // The key was deleted or replaced since then; that decision stands.
  if (!created) return;
  await transaction.delete([created]);
  const creator = replaced[0]?.createdBy;
  if (creator && !(await transaction.find.findById(creator))) return;
  await transaction.insert(replaced, 'CREATE', takesOwnPlace ? key : undefined);
  for (const step of steps) await step.reverted(transaction);
}
