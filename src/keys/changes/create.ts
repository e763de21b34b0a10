import { chainExpiry } from '../authorization/chain.ts';
import { requireToCreate } from '../authorization/granting.ts';
import { denied, OPERATOR, requireFor } from '../authorization/principal.ts';
import { NameTakenError } from '../errors.ts';
import type { ApiKey, NewKey, StoredKey } from '../key/api-key.ts';
import { normalizeDescription } from '../key/description.ts';
import { expiryOf } from '../key/expiry.ts';
import { normalizeName } from '../key/name.ts';
import { readGrants } from '../key/validation.ts';
import type { Catalog, Permission } from '../permissions/catalog.ts';
import type { KeyFinder } from '../repository.ts';
import type { Secret } from '../secret/secret.ts';
import { type ConfusableName, findConfusableNames } from './confusable-names.ts';
import type { Transaction } from './transaction.ts';

/** What creating a key does to the store. */
export interface Creation<Replaced extends ApiKey = StoredKey> {
  /** The new key. */
  key: StoredKey;
  /** What is deleted for it: the key of the same name first, then the keys that this one had created. */
  replaced: Replaced[];
  /** The name, if it is new and looks like others. */
  confusable: ConfusableName[];
}

/** What a creation would make, without an id and a secret. */
export interface KeyPreview extends Pick<ApiKey, 'name' | 'description' | 'roles' | 'permissions' | 'expiresAt'> {
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
  { catalog, now, id, secret }: { catalog: Catalog; now: number; id: string; secret: Secret },
): StoredKey {
  return {
    id,
    name: normalizeName(input.name),
    description: normalizeDescription(input.description),
    ...readGrants(input, catalog),
    publicId: secret.publicId,
    createdAt: now,
    createdBy: null,
    expiresAt: expiryOf(input, now) ?? null,
    disabledAt: null,
    managed: false,
    rotation: null,
    digest: secret.digest,
    previousDigest: null,
  };
}

/**
 * Checks whether the caller may create a key, and tells what that would do.
 * @throws NameTakenError; KeysError NAME_CONFUSABLE; ForbiddenError
 */
export async function planCreation<Key extends ApiKey>(
  { caller, find, catalog, now }: Pick<Transaction, 'caller' | 'catalog' | 'now'> & { find: KeyFinder<Key> },
  input: NewKey,
  built: StoredKey,
): Promise<Creation<Key>> {
  const key = { ...built };
  if (caller !== OPERATOR) {
    key.createdBy = caller.key.id;
    // Without a requested expiry, a key expires with the one that creates it.
    if (expiryOf(input, now) === undefined) key.expiresAt = chainExpiry(caller.chain);
  }
  requireToCreate(caller, key, catalog);
  const existing = await find.findByName(key.name);
  if (existing && !input.overwrite) throw new NameTakenError(key.name, true);
  if (!existing) return { key, replaced: [], confusable: await findConfusableNames(caller, find, [key.name]) };
  const replaced = await find.findWithDescendants([existing.id]);
  requireFor(caller, 'DELETE', [existing]);
  if (existing.id === key.createdBy) key.createdBy = existing.createdBy;
  // It would take the place of that key, and its creator: nobody would stand above it any more.
  else if (caller !== OPERATOR && replaced.some(({ id }) => id === key.createdBy))
    throw denied(caller, 'A key cannot replace one that it descends from. Rotate that key, or choose another name.');
  return { key, replaced, confusable: [] };
}

/** Creates a key, and deletes what it replaces. @throws what `planCreation` throws */
export async function createKey(transaction: Transaction, input: NewKey, built: StoredKey): Promise<Creation> {
  const creation = await planCreation(transaction, input, built);
  await transaction.delete(creation.replaced);
  await transaction.insert([creation.key]);
  return creation;
}

/** Reverts a creation: the key is deleted, and what it replaced works again. */
export async function revertCreation(transaction: Transaction, { key, replaced }: Creation): Promise<void> {
  const created = await transaction.find.findById(key.id);
  // Deleted or replaced meanwhile: somebody else has decided already.
  if (!created) return;
  await transaction.delete([created]);
  const creator = replaced[0]?.createdBy;
  if (!creator || (await transaction.find.findById(creator))) await transaction.insert(replaced);
}
