import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { BareConnection, ReceivedRequest } from './arrived-request.ts';
import { Exchange, type PassedRequest, UpstreamConnections } from './exchange.ts';
import {
  answerHeaders,
  type Framing,
  hasBody,
  headText,
  requestHeaders,
  type RequestToPass,
  requestTrailers,
} from './passed-headers.ts';
import type { Sent } from './sent-credentials.ts';
import { headerValues, notesOf, REQUEST_ID } from '../../http/index.ts';
import { formatHost, type Upstream } from '../routes/index.ts';

/** A single protocol, such as `websocket`. */
const PROTOCOL = /^[\w!#$%&'*+.^`|~-]+(?:\/[\w!#$%&'*+.^`|~-]+)?$/;
/** Over another version of HTTP, further requests would pass unchecked. */
const HTTP = /^(?:h2c?|http|tls)(?:\/|$)/i;
/** Interval of keep-alive probes to a silent peer, in milliseconds. */
const PROBE_MS = 60_000;

/**
 * The protocol that a client asks to switch to, such as `websocket`; undefined where it gets an ordinary answer. A
 * WebSocket begins with GET (RFC 6455, section 4.1); Docker attaches by POST.
 */
export function protocolOf(
  { method, rawHeaders, httpVersionMinor }: IncomingMessage,
  framing: Framing,
): string | undefined {
  const [protocol = '', ...others] = headerValues(rawHeaders, 'upgrade');
  const isSuitable = PROTOCOL.test(protocol) && !HTTP.test(protocol) && others.length === 0;
  const mayBegin = method === 'GET' || (method === 'POST' && protocol.toLowerCase() !== 'websocket');
  return isSuitable && mayBegin && httpVersionMinor === 1 && !hasBody(framing) ? protocol : undefined;
}

/** The upstream's answer that switches protocols. */
interface Switched {
  readonly answer: IncomingMessage;
  /** Credentials that the client must not see. */
  readonly sent: Sent;
  /** Further headers for the client, names and values in turn. */
  readonly headers: readonly string[];
}

/** Joins two connections after switching protocols. When one closes, so does the other. */
function join(client: BareConnection, upstream: BareConnection, { answer, sent, headers: more }: Switched): void {
  const [near, far] = [client.socket, upstream.socket];
  const headers = [
    ...answerHeaders(answer.rawHeaders, sent, [], more),
    'Connection',
    'Upgrade',
    'Upgrade',
    answer.headers.upgrade!,
  ];
  near.write(headText(101, sent.hide(answer.statusMessage!), headers), 'latin1');
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

/** Options for passing requests on. */
export interface ReverseProxyOptions {
  /** Time-out for the upstream to start its answer, and for the client to continue its body, in milliseconds. */
  readonly timeoutMs: number;
  /** Maximum number of connections to upstreams. */
  readonly maxConnections: number;
  /** Called with the reason that an upstream did not answer a request. */
  failed(upstream: Upstream, error: unknown, requestId?: string): void;
}

/** The upstream of a request, and what to add, change or withhold. */
type PassOptions = Pick<PassedRequest, 'sent' | 'body' | 'lookThrough' | 'fields' | 'refusedNow'> &
  Pick<RequestToPass, 'identity' | 'isCredential' | 'isPassedCredential' | 'saysWho' | 'arrival' | 'isTrusted'> & {
    readonly upstream: Upstream;
  };

/** Passes requests on to upstreams. */
export class ReverseProxy {
  readonly #options: ReverseProxyOptions;
  readonly #connections: UpstreamConnections;
  readonly #tunnels = new Set<Duplex>();

  constructor(options: ReverseProxyOptions) {
    this.#options = options;
    this.#connections = new UpstreamConnections(options.maxConnections);
  }

  /** Passes a request on, and the answer back. */
  pass(received: ReceivedRequest, { fields, refusedNow, upstream, ...options }: PassOptions): Exchange {
    const { incoming, outgoing, target, framing, switching } = received;
    const { sent, body, lookThrough } = options;
    const { id: requestId, trace } = notesOf(incoming) ?? {};
    const toPass: RequestToPass = {
      ...options,
      rawHeaders: incoming.rawHeaders,
      target,
      method: incoming.method!,
      host: upstream.rewriteHost ? formatHost(upstream.address) : target.host,
      framing: body ? ['Content-Length', `${body.length}`] : framing,
      requestId,
      trace,
      upgrade: switching?.protocol,
    };
    const passed: PassedRequest = {
      ...received,
      fields,
      sent,
      body,
      lookThrough,
      requestId,
      refusedNow,
      request: { method: incoming.method!, path: sent.addTo(target.path), headers: requestHeaders(toPass) },
      trailers: (rawTrailers) => requestTrailers(rawTrailers, toPass),
      switching: switching && {
        protocol: switching.protocol,
        switched: (answer, connection) => {
          outgoing.statusCode = 101;
          const headers = requestId === undefined ? [] : [REQUEST_ID, requestId];
          this.#join(switching.connection, connection, { answer, sent, headers });
        },
      },
    };
    const exchange = new Exchange(passed, {
      address: upstream.address,
      connections: this.#connections,
      timeoutMs: this.#options.timeoutMs,
      failed: (error, id) => this.#options.failed(upstream, error, id),
    });
    exchange.start();
    return exchange;
  }

  /** Closes connections that switched protocols, which would never end by themselves. */
  endTunnels(): void {
    for (const socket of this.#tunnels) socket.destroy();
  }

  /** Closes the connections to upstreams. */
  close(): void {
    this.#connections.close();
  }

  #join(client: BareConnection, upstream: BareConnection, switched: Switched): void {
    this.#tunnels.add(client.socket);
    client.socket.once('close', () => this.#tunnels.delete(client.socket));
    join(client, upstream, switched);
  }
}
