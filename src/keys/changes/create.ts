import type { NewKey, StoredKey } from '../key/api-key.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { normalizeDescription } from '../key/description.ts';
import { NameTakenError } from '../errors.ts';
import { expiryOf } from '../key/expiry.ts';
import { normalizeName } from '../key/name.ts';
import { OPERATOR, requireFor, requireToCreate } from '../authorization/principal.ts';
import type { Secret } from '../secret/secret.ts';
import type { Transaction } from './transaction.ts';
import { readGrants } from '../key/validation.ts';

/** A new key from a request that was checked. Who creates it is seen to when it is inserted. */
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
 * Inserts a new key for who asks for it, and deletes the key of its name where that is to be replaced.
 * @returns the key as it was inserted, and what made way for it: the key of its name first, then those that it had created
 * @throws NameTakenError; ForbiddenError
 */
export async function createKey(
  transaction: Transaction,
  input: NewKey,
  fresh: StoredKey,
): Promise<{ key: StoredKey; replaced: StoredKey[] }> {
  const { caller, find, catalog, now } = transaction;
  const key = { ...fresh };
  if (caller !== OPERATOR) {
    key.createdBy = caller.key.id;
    // Where nothing else was asked for, a key ends with the one that creates it.
    if (expiryOf(input, now) === undefined) key.expiresAt = caller.key.expiresAt;
  }
  requireToCreate(caller, key, catalog);
  const existing = await find.findByName(key.name);
  if (existing && !input.overwrite) throw new NameTakenError(key.name, true);
  const replaced = existing ? await find.findWithDescendants([existing.id]) : [];
  if (existing) {
    requireFor(caller, 'DELETE', [existing]);
    await transaction.delete(replaced);
    // A key that replaces its own creator, or itself, takes that key's place among the others.
    if (replaced.some(({ id }) => id === key.createdBy)) key.createdBy = existing.createdBy;
  }
  await transaction.insert([key]);
  return { key, replaced };
}

/** Takes a creation back: the key is removed, and what it replaced works again. */
export async function undoCreateKey(
  transaction: Transaction,
  key: StoredKey,
  replaced: readonly StoredKey[],
): Promise<void> {
  const created = await transaction.find.findById(key.id);
  // Where it was deleted or replaced meanwhile, somebody else has decided already.
  if (!created) return;
  await transaction.delete([created]);
  const creator = replaced[0]?.createdBy;
  if (replaced.length > 0 && (!creator || (await transaction.find.findById(creator))))
    await transaction.insert(replaced);
}
