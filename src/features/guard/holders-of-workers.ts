import cluster, { type Worker } from 'node:cluster';
import { setImmediate } from 'node:timers/promises';
import { type Holder, type Holders, KnownHolders } from './mcp-holders.ts';

/** A message of a worker about MCP sessions and tasks: the client's next request can reach any worker. */
type HolderMessage =
  | { holds: 'note'; id: string; holder: Holder }
  | { holds: 'find'; ids: readonly string[]; ask: number };

/** The primary's answer to a worker. */
interface FoundMessage {
  found: (Holder | null)[];
  ask: number;
}

/** Keeps in the primary, for all workers, the holders of sessions and tasks of MCP servers. */
export function keepHolders(): void {
  const known = new KnownHolders();
  const take = async (worker: Worker, message: HolderMessage) => {
    if (message.holds === 'note') return known.note(message.id, message.holder);
    // A note of another worker can arrive in the same turn.
    await setImmediate();
    const found = await known.find(message.ids);
    if (worker.isConnected()) worker.send({ found, ask: message.ask } satisfies FoundMessage, () => {});
  };
  cluster.on('message', (worker, message: object) => {
    if ('holds' in message) void take(worker, message as HolderMessage);
  });
}

/** In a worker: who holds sessions and tasks, as the primary knows it. */
export function holdersOfPrimary(): Holders {
  const asking = new Map<number, (found: FoundMessage['found']) => void>();
  let asked = 0;
  const send = (message: HolderMessage) => process.connected && process.send?.(message, undefined, undefined, () => {});
  process.on('message', (message: Partial<FoundMessage>) => {
    const { found, ask = 0 } = message;
    if (found) asking.get(ask)?.(found);
    asking.delete(ask);
  });
  return {
    note: (id, holder) => void send({ holds: 'note', id, holder }),
    find(ids) {
      asked += 1;
      const { promise, resolve } = Promise.withResolvers<FoundMessage['found']>();
      asking.set(asked, resolve);
      send({ holds: 'find', ids, ask: asked });
      return promise;
    },
  };
}
