import { type Actor, findAnswering } from '../../keys/authorization/index.ts';
import { mapYielding, MAX_PAGE_SIZE } from '../../keys/basics/index.ts';
import { statesOf } from '../../keys/operations/index.ts';
import type { KeysService, KeyWithAccess } from '../../keys/service/index.ts';

/** A key, for a review. */
export interface ReviewedKey extends Omit<KeyWithAccess, 'limitedBy' | 'issued'> {
  /** The owner of the key, or of the nearest ancestor with one; null if there is none. */
  readonly answering: string | null;
  /** The name of the key that created it; null if none did, or the caller cannot read it. */
  readonly creator: string | null;
}

/** Keys for a review, oldest first. */
export interface ReviewedPage {
  readonly keys: readonly ReviewedKey[];
  /** The cursor of the next page; null if this is the last one. */
  readonly next: string | null;
}

/** The keys after a cursor, with all their permissions. @throws KeysError STORE_… */
export async function reviewedKeys(keys: KeysService, after: string | null, actor: Actor): Promise<ReviewedPage> {
  const page = await keys.list({ first: MAX_PAGE_SIZE, after }, actor);
  const [chains, states] = await Promise.all([keys.chainsOf(page.keys), statesOf(keys, page.keys)]);
  const reviewed = await mapYielding(states.entries(), ([index, state]) => {
    const chain = chains[index]!;
    return {
      ...state,
      effectivePermissions: keys.accessOf(chain).permissions(),
      answering: findAnswering(chain)?.answering ?? null,
      creator: chain.keys[1]?.name ?? null,
    };
  });
  return { keys: reviewed, next: page.hasNextPage ? page.endCursor : null };
}
