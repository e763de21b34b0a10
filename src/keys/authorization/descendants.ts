import { KeysError } from '../errors.ts';
import { type ApiKey, withoutDigests } from '../key/api-key.ts';
import { MAX_PAGE_SIZE } from '../page.ts';
import type { KeyRepository } from '../repository.ts';
import { yielding } from '../yielding.ts';

/** The keys that a key created, those that these created, and so on. */
export interface Descendants {
  /** The nearest first. */
  keys: ApiKey[];
  /** Whether there are more. */
  hasMore: boolean;
}

/**
 * Finds the child keys of a key, generation by generation.
 * @param first the maximum number, from 1 to 500
 * @throws KeysError INPUT_INVALID, STORE_…
 */
export async function findDescendants(
  repository: Pick<KeyRepository, 'listCreatedBy'>,
  id: string,
  first: number,
): Promise<Descendants> {
  if (first < 1 || first > MAX_PAGE_SIZE)
    throw new KeysError('INPUT_INVALID', `"first" is ${first}; it can be 1 to ${MAX_PAGE_SIZE}.`);
  const found: ApiKey[] = [];
  // The list grows while it is gone through. One creator at a time: the keys of several would have to be sorted.
  const creators = [id];
  for await (const creator of yielding(creators)) {
    const page = await repository.listCreatedBy([creator], { limit: first + 1 - found.length });
    found.push(...page.map(withoutDigests));
    if (found.length > first) break;
    creators.push(...page.map((key) => key.id));
  }
  return { keys: found.slice(0, first), hasMore: found.length > first };
}
