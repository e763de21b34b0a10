import { KeysError } from '../errors.ts';
import type { ApiKey } from '../key/api-key.ts';
import { normalizeName } from '../key/name.ts';
import type { KeyFinder } from '../repository.ts';
import { printable } from '../text.ts';

/** Which of the revoked keys a restore brings back: those of these names, or all. */
export type BringBack = readonly string[] | 'all';

/** Which names are to be brought back, and whether the backup has them. */
export interface Wanted {
  /** Whether a key of the backup is to be brought back. */
  take(name: string): boolean;
  /** @throws KeysError NOT_FOUND that names those that no key of the backup has */
  requireAllTaken(): void;
}

export function wantedBy(bringBack: BringBack): Wanted {
  if (bringBack === 'all') return { take: () => true, requireAllTaken: () => {} };
  const missing = new Set(bringBack.map(normalizeName));
  const wanted = new Set(missing);
  return {
    take: (name) => {
      missing.delete(name);
      return wanted.has(name);
    },
    requireAllTaken: () => {
      if (missing.size === 0) return;
      const names = [...missing].map((name) => `"${printable(name)}"`).join(', ');
      throw new KeysError('NOT_FOUND', `The backup has no API key named ${names}. Nothing was changed.`);
    },
  };
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
