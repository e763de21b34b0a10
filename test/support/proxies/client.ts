import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { CERTIFICATE } from '../tls-proxy.ts';
import { SITE } from './configurations.ts';
import type { Got } from './service.ts';

/** The address of clients, which differs from the proxies' and is not in `trust`. */
export const CLIENT = '127.0.0.9';

const TRUSTED = { ca: readFileSync(CERTIFICATE), servername: 'localhost', host: '127.0.0.1', localAddress: CLIENT };

/** A request to the site. */
export interface Sent {
  method?: string;
  /** Default: `/`. */
  path?: string;
  /** Sent as they are. `host` is the site's unless it is given. */
  headers?: readonly (readonly [name: string, value: string])[];
  body?: string | Buffer;
  /** Default: a new connection. */
  agent?: Agent;
}

/** The answer that a client gets. */
export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
  /** The request as the service received it, if it reached the service. */
  got?: Got;
}

/** Sends the head of a request to the site over TLS. The body follows later. */
export function begin(port: number, { method = 'GET', path = '/', headers = [], agent }: Sent): ClientRequest {
  const hasHost = headers.some(([name]) => name.toLowerCase() === 'host');
  const all = [...(hasHost ? [] : ['Host', SITE]), ...headers.flat()];
  return request({ ...TRUSTED, port, method, path, agent: agent ?? false, headers: all });
}

/** Sends a request to the site over TLS, and reads the answer. */
export async function ask(port: number, { body, headers = [], ...sent }: Sent): Promise<Answer> {
  const length = body === undefined ? [] : [['Content-Length', String(Buffer.byteLength(body))] as const];
  const asked = begin(port, { ...sent, headers: [...headers, ...length] });
  asked.end(body);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return answerOf(response.statusCode!, response.headers, await text(response));
}

/** Sends a request over HTTP/2. */
export async function askByHttp2(
  port: number,
  { method = 'GET', path = '/', headers = [], body }: Sent,
): Promise<Answer> {
  const session = connectHttp2(`https://127.0.0.1:${port}`, TRUSTED);
  const stream = session.request(
    { ':method': method, ':path': path, ':authority': SITE, ...Object.fromEntries(headers) },
    { endStream: body === undefined },
  );
  if (body !== undefined) stream.end(body);
  const [response] = (await once(stream, 'response')) as [Answer['headers'] & { ':status': number }];
  const answer = answerOf(response[':status'], response, await text(stream));
  session.close();
  return answer;
}

/** Sends bytes to the site, and reads until the connection ends. */
export async function sendBytes(port: number, bytes: string): Promise<string> {
  const socket = await open(port);
  // The socket stays open: some proxies treat a half-close as a disconnect.
  socket.write(bytes);
  return text(socket);
}

/** Requests a WebSocket. @returns the connection and the first bytes of the answer */
export function askForWebSocket(port: number, headers: readonly string[], host = SITE): Promise<[TLSSocket, string]> {
  return askToUpgrade(port, 'GET /live', ['Connection: Upgrade', 'Upgrade: websocket', ...headers], host);
}

/** Requests another protocol, as for a WebSocket. @param asked a method and a path */
export async function askToUpgrade(
  port: number,
  asked: string,
  headers: readonly string[],
  host = SITE,
): Promise<[TLSSocket, string]> {
  const socket = await open(port);
  socket.write(
    [
      `${asked} HTTP/1.1`,
      `Host: ${host}`,
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ...headers,
      '\r\n',
    ].join('\r\n'),
  );
  let received = '';
  for await (const chunk of socket.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    received += String(chunk);
    if (received.includes('\r\n\r\n') && (!received.startsWith('HTTP/1.1 101') || received.endsWith('}\n'))) break;
  }
  return [socket, received];
}

async function open(port: number): Promise<TLSSocket> {
  const socket = connect({ ...TRUSTED, port });
  await once(socket, 'secureConnect');
  return socket;
}

function answerOf(status: number, headers: Answer['headers'], body: string): Answer {
  const isOfService = headers['content-type'] === 'application/json' && body.startsWith('{"method"');
  return { status, headers, body, ...(isOfService && { got: JSON.parse(body) as Got }) };
}
