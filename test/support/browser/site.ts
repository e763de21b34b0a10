import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A third-party site with an origin of its own. */
export interface Site {
  readonly url: string;
  /** The requested paths, with their queries. */
  readonly asked: readonly string[];
  stop(): Promise<void>;
}

/** Starts a site that answers every path with the same page. */
export async function startSite(html: string, host: string): Promise<Site> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url!);
    response.setHeader('content-type', 'text/html; charset=utf-8').end(html);
  });
  await once(server.listen(0, host), 'listening');
  const stop = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  return { url: `http://${host}:${(server.address() as AddressInfo).port}`, asked, stop };
}
