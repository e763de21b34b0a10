import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Somebody else's pages, at an origin of their own. */
export interface Site {
  /** Its origin. */
  readonly url: string;
  /** The paths that were asked for, with their queries. */
  readonly asked: readonly string[];
  stop(): Promise<void>;
}

/** Starts such a site, with one page at all addresses. */
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
