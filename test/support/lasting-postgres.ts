import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startPostgresServer } from './postgres.ts';
import { startProxy } from './proxy.ts';
import { tempFolder } from './temp.ts';

/** A PostgreSQL server of its own, which may be started again on the same data, behind an address that stays. */
export interface LastingPostgres {
  /** The URL of the server itself, which may be on another port each time. */
  readonly url: string;
  /** The URL that stays, of a proxy. */
  readonly address: string;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Leads the proxy to the server that was started since. */
  lead(): void;
  /** Stops the server and the proxy. */
  end(): Promise<void>;
}

export async function startLastingPostgres(): Promise<LastingPostgres> {
  const place = tempFolder();
  // PostgreSQL runs as another user where we are root.
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
