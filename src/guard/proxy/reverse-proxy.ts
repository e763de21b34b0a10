import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { peerOf } from '../../http/client-address.ts';
import type { RateLimitFields } from '../../http/rate-limit-fields.ts';
import type { Reply } from '../../http/replies.ts';
import { REQUEST_ID } from '../../http/request-id.ts';
import { notesOf } from '../../http/request-notes.ts';
import type { Networks } from '../../keys/networks.ts';
import type { IsCredential } from './credential-headers.ts';
import { Exchange, type PassedRequest } from './exchange.ts';
import type { Peer } from './forwarding.ts';
import { requestHeaders, requestTrailers, type RequestToPass } from './passed-headers.ts';
import type { BareConnection, ReceivedRequest } from './received.ts';
import { join, type Switched } from './tunnel.ts';
import { hostOf, Upstream, type UpstreamAddress } from './upstream.ts';

/** Where requests are passed on to, and what changes on the way. */
export interface ReverseProxyOptions {
  readonly upstream: UpstreamAddress;
  /** Whether the upstream gets its own address as the Host, instead of the client's. */
  readonly rewriteHost: boolean;
  /** How long the upstream may take to begin its answer, and the client to go on with its body, in milliseconds. */
  readonly timeoutMs: number;
  /** How many connections to the upstream there may be at a time. */
  readonly maxConnections: number;
  /** Is told why the upstream did not answer a request. */
  failed(error: unknown, requestId?: string): void;
}

/** What the upstream is told of a request, and what not. */
export interface Passing {
  /** The headers that say who makes it, names and values in turn. */
  readonly identity: readonly string[];
  readonly isCredential: IsCredential;
  /** Whose forwarded headers are believed. */
  readonly trust: Networks;
  /** What the client is told of the limits of its key. */
  readonly fields: RateLimitFields | undefined;
  /** The reply to it if its key, as that is now, may not go on with it. */
  readonly refusedNow: () => Reply | undefined | Promise<Reply | undefined>;
}

/** Passes requests on to an upstream. */
export class ReverseProxy {
  readonly #options: ReverseProxyOptions;
  readonly #upstream: Upstream;
  readonly #tunnels = new Set<Duplex>();

  constructor(options: ReverseProxyOptions) {
    this.#options = options;
    this.#upstream = new Upstream(options.upstream, options.maxConnections);
  }

  /** Passes a request on, and the answer back. */
  pass(received: ReceivedRequest, { identity, isCredential, trust, fields, refusedNow }: Passing): Exchange {
    const { incoming, outgoing, target, framing, switching } = received;
    const { upstream, rewriteHost } = this.#options;
    const { id: requestId, trace } = notesOf(incoming) ?? {};
    const toPass: RequestToPass = {
      rawHeaders: incoming.rawHeaders,
      target,
      host: rewriteHost ? hostOf(upstream) : target.host,
      framing,
      peer: peerAt(incoming.socket, trust),
      identity,
      requestId,
      trace,
      upgrade: switching?.protocol,
      isCredential,
    };
    const passed: PassedRequest = {
      ...received,
      fields,
      requestId,
      refusedNow,
      request: { method: incoming.method!, path: target.path, headers: requestHeaders(toPass) },
      trailers: (rawTrailers) => requestTrailers(rawTrailers, toPass),
      switching: switching && {
        protocol: switching.protocol,
        switched: (answer, connection) => {
          outgoing.statusCode = 101;
          const headers = requestId === undefined ? [] : [REQUEST_ID, requestId];
          this.#join(switching.connection, connection, { answer, headers });
        },
      },
    };
    const exchange = new Exchange(passed, { ...this.#options, upstream: this.#upstream });
    exchange.start();
    return exchange;
  }

  /** Ends the connections whose protocol was switched: they would never end by themselves. */
  endTunnels(): void {
    for (const socket of this.#tunnels) socket.destroy();
  }

  /** Closes the connections to the upstream. */
  close(): void {
    this.#upstream.close();
  }

  #join(client: BareConnection, upstream: BareConnection, switched: Switched): void {
    this.#tunnels.add(client.socket);
    client.socket.once('close', () => this.#tunnels.delete(client.socket));
    join(client, upstream, switched);
  }
}

function peerAt(socket: Socket, trust: Networks): Peer {
  const address = peerOf(socket);
  const isTrusted = address !== undefined && trust.includes(address);
  return { address, isEncrypted: (socket as Partial<TLSSocket>).encrypted === true, isTrusted };
}
