import { createHash, hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';

/** A request, as the service received it. */
export interface Got {
  method: string;
  url: string;
  /** Names in lower case and values, in order of arrival. */
  headers: [name: string, value: string][];
  body: string;
}

/** A service without authorization of its own. It echoes each request in its answer. */
export interface Service {
  port: number;
  /** The number of requests whose URL has this prefix. Default: all. */
  requests(prefix?: string): number;
  /** The number of connections accepted so far. */
  connections(): number;
  /** How many bytes of the last body for `/upload` have arrived. */
  uploaded(): number;
  /** Sends an event to the client of `/events`, or ends the stream. */
  sendEvent(text: string): void;
  endEvents(): void;
  stop(): Promise<void>;
}

/** The constant in the accept key of a WebSocket handshake (RFC 6455, section 1.3). */
const WEBSOCKET = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** The body of `/download`, repeated as often as its query says. */
export const PIECE: Buffer = Buffer.from(Array.from({ length: 65_536 }, (_, index) => (index * 31) % 251));

/**
 * Starts the service. After a WebSocket handshake, it echoes the request in a line, and then every message until `bye`.
 */
export async function startService(): Promise<Service> {
  let [connections, uploaded] = [0, 0];
  const urls: string[] = [];
  const listening = new Set<ServerResponse>();
  const open = new Set<Socket>();
  const answers: Readonly<Record<string, (incoming: IncomingMessage, outgoing: ServerResponse) => unknown>> = {
    '/events': (_, outgoing) => {
      listening.add(outgoing.once('close', () => listening.delete(outgoing)));
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    },
    '/download': async ({ url }, outgoing) => {
      for (let count = Number(url!.split('?')[1]); count > 0; count -= 1)
        if (!outgoing.write(PIECE)) await once(outgoing, 'drain');
      outgoing.end();
    },
    '/upload': async (incoming, outgoing) => {
      uploaded = 0;
      const digest = createHash('sha256');
      for await (const chunk of incoming as AsyncIterable<Buffer>) {
        uploaded += chunk.length;
        digest.update(chunk);
      }
      outgoing.end(digest.digest('hex'));
    },
  };
  const echo = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const got = gotOf(incoming, await text(incoming));
    outgoing.setHeader('content-type', 'application/json').end(JSON.stringify(got));
  };
  const server = createServer({ maxHeaderSize: 65_536, keepAliveTimeout: 0 }, async (incoming, outgoing) => {
    urls.push(incoming.url!);
    try {
      await (answers[incoming.url!.split('?')[0]!] ?? echo)(incoming, outgoing);
    } catch {
      outgoing.destroy(); // The client has gone.
    }
  });
  server.on('connection', (socket) => {
    connections += 1;
    open.add(socket.once('close', () => open.delete(socket)));
  });
  server.on('upgrade', (incoming, socket) => {
    urls.push(incoming.url!);
    socket.on('error', () => {});
    const accept = hash('sha1', `${incoming.headers['sec-websocket-key']}${WEBSOCKET}`, 'base64');
    const head = [
      '101 Switching Protocols',
      'Connection: Upgrade',
      `Upgrade: ${incoming.headers.upgrade}`,
      `Sec-WebSocket-Accept: ${accept}`,
    ];
    socket.write(`HTTP/1.1 ${head.join('\r\n')}\r\n\r\n`);
    socket.write(`${JSON.stringify(gotOf(incoming, ''))}\n`);
    socket.on('data', (data) => (String(data) === 'bye\n' ? socket.end() : socket.write(data)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    requests: (prefix = '') => urls.filter((url) => url.startsWith(prefix)).length,
    connections: () => connections,
    uploaded: () => uploaded,
    sendEvent: (event) => listening.forEach((outgoing) => outgoing.write(`data: ${event}\n\n`)),
    endEvents: () => listening.forEach((outgoing) => outgoing.end()),
    async stop() {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, 'close');
    },
  };
}

function gotOf(
  { method = '', url = '', rawHeaders }: { method?: string; url?: string; rawHeaders: string[] },
  body: string,
): Got {
  const headers = rawHeaders.flatMap((name, index): Got['headers'] =>
    index % 2 === 0 ? [[name.toLowerCase(), rawHeaders[index + 1]!]] : [],
  );
  return { method, url, headers, body };
}

/** The values of a header, as the service received it. */
export function valuesOf({ headers }: Got, wanted: string): string[] {
  return headers.filter(([name]) => name === wanted).map(([, value]) => value);
}
