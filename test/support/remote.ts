import { withKeys } from '../../src/cli/with-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { openTestKeys } from './keys.ts';
import type { Finished } from './process.ts';
import { startServer } from './server.ts';
import { makeStore } from './temp.ts';

/** A running server over a store, and a key that can do everything there. */
export interface RemoteStore {
  url: string;
  key: string;
  /** The key's id. */
  id: string;
  /** Writes the usage and refusals that the server has collected, which it otherwise does only when it stops. */
  flush(): Promise<void>;
  stop(): Promise<void>;
}

/** The key's name. */
export const CALLER = 'Caller of the tests';
const open = new Map<string, Promise<RemoteStore>>();

/** The server over a store. It is started on the first call and runs until `stopRemoteStores`. */
export function remoteStore(database: string): Promise<RemoteStore> {
  const known = open.get(database) ?? start(database);
  open.set(database, known);
  return known;
}

export async function stopRemoteStores(): Promise<void> {
  const all = [...open.values()];
  open.clear();
  for (const server of all) await (await server).stop();
}

async function start(database: string): Promise<RemoteStore> {
  await makeStore(database);
  const { key: secret, apiKey: key } = await withKeys({ database }, (keys) =>
    keys.create({ name: CALLER, roles: ['ADMIN'] }, OPERATOR),
  );
  const time = {
    get now() {
      return Date.now();
    },
  };
  const { keys, store } = await openTestKeys({ database, asServer: true, time });
  const server = await startServer(keys);
  const flush = () => keys.finishActivity();
  const stop = async () => {
    await server.stop();
    await flush();
    await keys.endFeatures();
    await store.close();
  };
  return { url: server.url, key: secret, id: key.id, flush, stop };
}

/** The output of a command as if the operator had run it on the store: without the key that sent it. */
export function asOperator(result: Finished, { id }: RemoteStore): Finished {
  const { stdout } = result;
  if (!stdout.includes(id) && !stdout.includes(CALLER)) return result;
  if (stdout.startsWith('{'))
    return { ...result, stdout: `${JSON.stringify(withoutCaller(JSON.parse(stdout), id), null, 2)}\n` };
  const lines = stdout.split('\n').filter((line) => !line.startsWith(`${CALLER}\t`));
  return { ...result, stdout: lines.join('\n') };
}

function withoutCaller(value: unknown, id: string): unknown {
  if (Array.isArray(value))
    return value
      .filter((item: { name?: string } | null) => item?.name !== CALLER)
      .map((item) => withoutCaller(item, id));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([name, inner]) => [
    name,
    name === 'createdBy' && inner === id ? null : withoutCaller(inner, id),
  ]);
  return Object.fromEntries(fields) as object;
}
