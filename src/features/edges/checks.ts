import type { CheckAnswer, CheckContext, CheckedItem } from '../../feature.ts';
import { formatTime, printable, UNIT_MS } from '../../keys/basics/index.ts';
import { listedEdge } from './edges.ts';
import { FEED, isBehind, type KnownEdge } from './feed.ts';

/** How long before its key expires an edge is warned of. */
const EXPIRING_MS = 7 * UNIT_MS.d;

/** Lists the edges that follow the store, and checks that they answer, and that their keys do not expire soon. */
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
  const follow = edges.length === 1 ? '1 edge follows' : `${edges.length} edges follow`;
  const answer = edges.length === 1 ? 'answers' : 'answer';
  const message = behind.length > 0 ? `${follow}.` : `${follow}, and ${answer}.`;
  const items = edges.map((edge) => itemOf(edge, clock()));
  return [{ status: 'ok', message, items }, ...behind, ...expiring];
}

/** An edge in the list. It is behind if it refuses keys, and rests if it has no requests. */
function itemOf(known: KnownEdge, now: number): CheckedItem {
  const { id, name, key, address = null, leaseMs, isResting, lagMs, lastAskedAt } = listedEdge(known, now);
  const state = isResting ? 'resting' : leaseMs > 0 ? 'answering' : 'behind';
  const from = address === null ? '' : ` at ${address}`;
  return {
    text: `${state}: "${name}"${from}, with the key "${key.name}", ${(lagMs / 1000).toFixed(1)} s behind, asked at ${formatTime(lastAskedAt)}`,
    json: { id, name, apiKey: key, address, leaseMs, isResting, lagMs, lastAskedAt: formatTime(lastAskedAt) },
  };
}
