import Database from 'better-sqlite3';
import { figure, table } from './figures.ts';
import { load, startServer } from './processes.ts';
import { requestOf } from './requests.ts';
import { SVC_API } from './rows.ts';
import { makeStore, storePath, withFolder } from './stores.ts';
import { ME, type Workload } from './workloads.ts';

const IN_FLIGHT = [8, 64, 256, 1024];
const KEYS = 50_000;
const SECONDS = 10;
const FIELDS = 'edges { node { id name roles createdAt createdBy expiresAt } }';
const TWO_PAGES: Workload = {
  title: 'two pages of 500 keys',
  body: { query: `{ a: apiKeys(first: 500) { ${FIELDS} } b: apiKeys(first: 500) { ${FIELDS} } }` },
};

/**
 * Measures more large requests at a time than a server can carry out, together with `me` on another connection.
 * @returns a table of statuses and times
 */
export function measureOverload(): Promise<string> {
  return withFolder(async (folder) => {
    const keys = await makeStore(storePath(folder), KEYS, 100);
    const db = new Database(storePath(folder));
    db.prepare(`update api_keys set roles = '["ADMIN"]', created_by = nullif(:root, id)`).run({ root: keys[0]!.id });
    db.close();
    const tokens = keys.map(({ secret }) => secret);
    const rows = [];
    let few: number | undefined;
    for (const connections of IN_FLIGHT) {
      const server = await startServer(SVC_API, folder);
      const send = (workload: Workload, count: number) => {
        const request = requestOf(workload, server.port);
        const times = { warmUp: 2, seconds: SECONDS };
        return load({ port: server.port, connections: count, request, tokens, from: 0, statuses: [200], ...times });
      };
      let memory = 0;
      const watch = setInterval(() => (memory = Math.max(memory, server.memory())), 500);
      const [large, me] = await Promise.all([send(TWO_PAGES, connections), send(ME, 1)]);
      clearInterval(watch);
      await server.stop();
      few ??= large.rate;
      rows.push([
        figure(connections),
        figure(large.rate, 1),
        figure(large.rate / few, 2),
        figure(large.wrong),
        figure(memory / 2 ** 20),
        figure(me.p99, 1),
      ]);
    }
    return table(['in flight', 'answers/s', 'of those at 8', '503', 'MB', 'p99 of `me` beside it, ms'], rows);
  });
}
