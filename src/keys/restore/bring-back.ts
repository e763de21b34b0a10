import { KeysError } from '../errors.ts';
import type { ApiKey } from '../key/api-key.ts';
import { normalizeName } from '../key/name.ts';
import type { KeyFinder } from '../repository.ts';
import { prefixOf } from '../secret/secret.ts';
import { printable } from '../text.ts';

/** Which of the revoked keys a restore brings back: those of these names or ids in the backup, or all. */
export type BringBack = readonly string[] | 'all';

/** Which keys are to be brought back, and whether the backup has them. */
export interface Wanted {
  /** Whether a key of the backup is to be brought back. */
  take(key: Pick<ApiKey, 'id' | 'name'>): boolean;
  /** @throws KeysError NOT_FOUND that tells those that no key of the backup has */
  requireAllTaken(): void;
}

export function wantedBy(bringBack: BringBack): Wanted {
  if (bringBack === 'all') return { take: () => true, requireAllTaken: () => {} };
  const missing = new Set(bringBack.map(normalizeName));
  const wanted = new Set(missing);
  return {
    // No id is a name: it has hyphens.
    take: ({ id, name }) => {
      for (const one of [id, name]) missing.delete(one);
      return wanted.has(id) || wanted.has(name);
    },
    requireAllTaken: () => {
      if (missing.size === 0) return;
      const names = [...missing].map((name) => `"${printable(name)}"`).join(', ');
      throw new KeysError('NOT_FOUND', `The backup has no API key with the name or id ${names}. Nothing was changed.`);
    },
  };
}

/**
 * Requires that no key is to get a name that another one keeps: one that is damaged in the backup stays as it is.
 * @param stay the names that such keys have now, each with its key
 * @param gets whether a key gets the name that it has in the backup
 * @throws KeysError INPUT_INVALID
 */
export async function requireFreeNames(
  stay: ReadonlyMap<string, ApiKey>,
  backup: Pick<KeyFinder, 'findBy'>,
  gets: (keys: readonly ApiKey[]) => Promise<readonly ApiKey[]>,
): Promise<void> {
  const named = (stay.size > 0 ? await backup.findBy('name', [...stay.keys()]) : []).filter(({ damaged }) => !damaged);
  const [key] = await gets(named);
  if (!key) return;
  const { publicId } = stay.get(key.name)!;
  throw new KeysError(
    'INPUT_INVALID',
    `"${printable(key.name)}" is the name of ${prefixOf(key.publicId)} in the backup, and now that of ` +
      `${prefixOf(publicId)}, which is damaged in the backup and stays as it is. Rename or delete that key first.`,
  );
}

/**
 * Requires that the creators of keys that come back are there or come back as well.
 * @throws KeysError INPUT_INVALID
 */
export async function requireCreators(keys: readonly ApiKey[], present: Pick<KeyFinder, 'findBy'>): Promise<void> {
  const returning = new Set(keys.map(({ id }) => id));
  const others = [...new Set(keys.flatMap(({ createdBy }) => createdBy ?? []))].filter((id) => !returning.has(id));
  const there = new Set((others.length > 0 ? await present.findBy('id', others) : []).map(({ id }) => id));
  const orphan = keys.find(({ createdBy }) => createdBy !== null && !returning.has(createdBy) && !there.has(createdBy));
  if (!orphan) return;
  throw new KeysError(
    'INPUT_INVALID',
    `"${orphan.name}" cannot be brought back alone: the key that created it was deleted as well. Bring that back, too.`,
  );
}
