import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { hasBody, type Framing } from './framing.ts';
import { headText } from './head-text.ts';
import { valuesOf } from './header-names.ts';
import { answerHeaders } from './passed-headers.ts';
import type { BareConnection } from './received.ts';

/** One protocol, as `websocket`. */
const PROTOCOL = /^[\w!#$%&'*+.^`|~-]+(?:\/[\w!#$%&'*+.^`|~-]+)?$/;
/** Over another version of HTTP, further requests would pass unchecked. */
const HTTP = /^(?:h2c?|http|tls)(?:\/|$)/i;
/** How often a peer that says nothing is asked whether it is still there, in milliseconds. */
const PROBE_MS = 60_000;

/**
 * The protocol that a client asks to switch to, such as `websocket`; undefined where it gets an ordinary answer. A
 * WebSocket begins with GET (RFC 6455, section 4.1); Docker attaches by POST.
 */
export function protocolOf(
  { method, rawHeaders, httpVersionMinor }: IncomingMessage,
  framing: Framing,
): string | undefined {
  const [protocol = '', ...others] = valuesOf(rawHeaders, 'upgrade');
  const isSuitable = PROTOCOL.test(protocol) && !HTTP.test(protocol) && others.length === 0;
  const mayBegin = method === 'GET' || (method === 'POST' && protocol.toLowerCase() !== 'websocket');
  return isSuitable && mayBegin && httpVersionMinor === 1 && !hasBody(framing) ? protocol : undefined;
}

/** The upstream's answer by which the protocol is switched. */
export interface Switched {
  readonly answer: IncomingMessage;
  /** Those that the client is to get besides, names and values in turn. */
  readonly headers: readonly string[];
}

/**
 * Joins two connections: tells the client that the protocol is switched, and passes on what either side sends. When one
 * ends, so does the other.
 */
export function join(client: BareConnection, upstream: BareConnection, { answer, headers: more }: Switched): void {
  const [near, far] = [client.socket, upstream.socket];
  const headers = [
    ...answerHeaders(answer.rawHeaders, [], more),
    'Connection',
    'Upgrade',
    'Upgrade',
    answer.headers.upgrade!,
  ];
  near.write(headText(101, answer.statusMessage!, headers), 'latin1');
  if (client.head.length > 0) near.unshift(client.head);
  if (upstream.head.length > 0) far.unshift(upstream.head);
  for (const [here, there] of [
    [near, far],
    [far, near],
  ] as const) {
    prepare(here as Socket);
    here.on('error', () => {}); // It closes.
    here.once('close', () => there.destroy());
    here.pipe(there);
  }
}

function prepare(socket: Socket): void {
  socket.setTimeout(0);
  socket.setKeepAlive(true, PROBE_MS);
  socket.setNoDelay(true);
}
