import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startPostgresServer } from './postgres.ts';
import { startProxy } from './proxy.ts';
import { tempFolder } from './temp.ts';

/** A PostgreSQL server that can restart on the same data, behind a stable address. */
export interface LastingPostgres {
  /** The URL of the server itself, whose port can change. */
  readonly url: string;
  /** The stable URL, of a proxy. */
  readonly address: string;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Points the proxy to the restarted server. */
  lead(): void;
  /** Stops the server and the proxy. */
  end(): Promise<void>;
}

export async function startLastingPostgres(): Promise<LastingPostgres> {
  const place = tempFolder();
  // As root, we start PostgreSQL as another user.
  chmodSync(place, 0o755);
  const folder = join(place, 'data of it');
  mkdirSync(folder);
  let server = await startPostgresServer(folder);
  const port = () => Number(new URL(server.url).port);
  const proxy = await startProxy(port());
  return {
    get url() {
      return server.url;
    },
    address: Object.assign(new URL(server.url), { port: String(proxy.port) }).href,
    start: async () => void (server = await startPostgresServer(folder)),
    stop: () => server.stop(),
    lead: () => proxy.redirect(port()),
    async end() {
      proxy.close();
      await server.stop();
    },
  };
}
