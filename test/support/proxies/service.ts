import { hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';

/** What the service got. */
export interface Got {
  method: string;
  url: string;
  /** Names in lower case and values, as they came. */
  headers: [name: string, value: string][];
  body: string;
}

/** A service without any authorization of its own, which answers each request with what it got of it. */
export interface Service {
  port: number;
  /** How many requests it has got. */
  requests(): number;
  /** How many connections were made to it. */
  connections(): number;
  stop(): Promise<void>;
}

/** What a server shows by that it speaks WebSocket (RFC 6455, section 1.3). */
const WEBSOCKET = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Starts it. After a WebSocket handshake, it says what it got, in a line, and sends back whatever comes. */
export async function startService(): Promise<Service> {
  let [requests, connections] = [0, 0];
  const open = new Set<Socket>();
  const server = createServer({ maxHeaderSize: 65_536 }, async (incoming, outgoing) => {
    requests += 1;
    outgoing.setHeader('content-type', 'application/json');
    outgoing.end(JSON.stringify(gotOf(incoming, await text(incoming))));
  });
  server.on('connection', (socket) => {
    connections += 1;
    open.add(socket.once('close', () => open.delete(socket)));
  });
  server.on('upgrade', (incoming, socket) => {
    requests += 1;
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
    socket.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    requests: () => requests,
    connections: () => connections,
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
