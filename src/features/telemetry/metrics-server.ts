import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { startListening, formatUrl } from '../../http/listen-address.ts';
import { isLoopbackHost } from '../../keys/basics/index.ts';

export interface MetricsServer {
  /** Its address with the path. */
  readonly url: string;
  /** Stops it. Open scrapes get their answers within a short time. */
  stop(): Promise<void>;
}

const PATH = '/metrics';
const MAX_CONNECTIONS = 64;
/** Time-out for a scraper to send its request and to read the answer, in milliseconds. */
const PATIENCE_MS = 10_000;
const STOP_GRACE_MS = 1000;

/**
 * Serves metrics to Prometheus on a separate port.
 * @param scrape returns the metrics in the text format; concurrent requests share one scrape
 * @throws KeysError LISTEN_FAILED if the address is not available
 */
export async function serveMetrics(
  address: { host: string; port: number },
  { contentType, scrape }: { contentType: string; scrape: () => Promise<string> },
): Promise<MetricsServer> {
  let scraping: Promise<string> | undefined;
  const shared = () => (scraping ??= scrape().finally(() => (scraping = undefined)));
  const isLocal = isLoopbackHost(address.host);
  const server = createServer({ headersTimeout: PATIENCE_MS, requestTimeout: PATIENCE_MS }, (incoming, outgoing) => {
    incoming.resume();
    void answer(incoming, outgoing, { contentType, scrape: shared, isLocal });
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.timeout = 2 * PATIENCE_MS;
  await startListening(server, address, {
    host: 'server.metricsHost in svc-api.yaml, or --metrics-host',
    port: '--metrics-port',
  });
  return {
    url: formatUrl(server, 'http') + PATH,
    async stop() {
      const deadline = setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS);
      await new Promise((resolve) => {
        server.close(resolve);
        server.closeIdleConnections();
      });
      clearTimeout(deadline);
    },
  };
}

/** @param parts includes whether it only listens on this machine, where any site could reach it by DNS rebinding */
async function answer(
  { method, url = '', headers: { host = '' } }: IncomingMessage,
  outgoing: ServerResponse,
  parts: { contentType: string; scrape: () => Promise<string>; isLocal: boolean },
): Promise<void> {
  const say = (status: number, text: string, headers: Record<string, string> = {}) => {
    outgoing.writeHead(status, {
      'Content-Type': 'text/plain; charset=utf-8',
      'X-Content-Type-Options': 'nosniff',
      'Content-Length': `${Buffer.byteLength(text)}`,
      ...headers,
    });
    outgoing.end(method === 'HEAD' ? undefined : text);
  };
  if (url.replace(/\?.*$/s, '') !== PATH) return say(404, `Metrics are at ${PATH}.\n`);
  if (parts.isLocal && !isLoopbackHost(URL.parse(`http://${host}`)?.hostname ?? ''))
    return say(403, 'Metrics can only be read on this machine: use localhost or 127.0.0.1, or set metricsHost.\n');
  if (method !== 'GET' && method !== 'HEAD') return say(405, 'Use GET to read metrics.\n', { Allow: 'GET, HEAD' });
  try {
    say(200, await parts.scrape(), { 'Content-Type': parts.contentType });
  } catch {
    say(500, 'The metrics could not be collected.\n');
  }
}
