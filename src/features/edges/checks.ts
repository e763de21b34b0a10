import type { CheckAnswer, CheckContext } from '../../feature.ts';
import { formatTime, printable, UNIT_MS } from '../../keys/basics/index.ts';
import { FEED, isBehind } from './feed.ts';

/** How long before its key expires an edge is warned of. */
const EXPIRING_MS = 7 * UNIT_MS.d;

/** Checks that the edges that follow the store answer, and that their keys do not expire soon. */
export async function checkEdges({ store, clock }: CheckContext): Promise<CheckAnswer[]> {
  const edges = (await store?.repository.port(FEED).edges()) ?? [];
  if (!store || edges.length === 0) return [];
  const behind = edges.filter(isBehind).map(({ name, lagMs }): CheckAnswer => ({
    status: 'warning',
    message: `The edge "${printable(name)}" refuses all keys: it took the last changes ${Math.round(lagMs / 1000)} s ago.`,
    remedy: 'Check that it runs and reaches a server. A stopped edge leaves the list after 10 minutes.',
  }));
  const keys = await store.repository.findBy('id', [...new Set(edges.map(({ key }) => key.id))]);
  const expiring = keys
    .filter(({ expiresAt }) => expiresAt !== null && expiresAt < clock() + EXPIRING_MS)
    .map(({ name, expiresAt }): CheckAnswer => ({
      status: 'warning',
      message: `The key "${printable(name)}" of an edge expires at ${formatTime(expiresAt!)}.`,
      remedy: 'Let it expire later, or give its edges another key.',
    }));
  const found = [...behind, ...expiring];
  const message = edges.length === 1 ? '1 edge follows, and answers.' : `${edges.length} edges follow, and answer.`;
  return found.length > 0 ? found : [{ status: 'ok', message }];
}
