import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { type Log, NO_LOG } from '../log.ts';
import { type CertificateFiles, CertificateWatch } from './certificate.ts';
import { peerOf } from './client-address.ts';
import { type ConnectionLimits, Connections } from './connections.ts';
import { answerInvalidRequest, refuseExpectation } from './invalid-request.ts';
import { type ListenAddress, startListening, formatUrl } from './listen-address.ts';
import { IdentifiedResponse, responseClass, UnreadAnswers, type UnreadLimits } from './responses.ts';
import { notingFor, type RequestPlaces, type RequestWatcher } from './watched-request.ts';

/** The address of a server, and its limits for clients. */
export type ServerOptions = ListenAddress & {
  /** The certificate, for TLS, which is reloaded when its files change. Default: plain HTTP. */
  tls?: CertificateFiles;
  /** How long a connection is kept after an answer, in milliseconds. Default: 75,000, longer than proxies keep one. */
  keepAliveMs?: number;
  /** Limits for clients, where they differ from the default. */
  limits?: ServerLimits;
  /** Logs reloads of the certificate. Default: nothing is logged. */
  log?: Log;
  /** Called for each request. */
  watchers?: readonly RequestWatcher[];
};

/** The limits of clients, in connections, time and memory. */
export interface ServerLimits extends ConnectionLimits, UnreadLimits {
  /** The longest time for the head of a request to arrive, in milliseconds. Default: 10,000. */
  headersMs?: number;
  /** The longest time for a whole request to arrive, in milliseconds; 0 for no limit. Default: 30,000. */
  requestMs?: number;
}

/** Answers the requests of a server. */
export interface RequestHandler extends RequestPlaces {
  handle(incoming: IncomingMessage, outgoing: ServerResponse): void;
  /** Handles a request whose client waits for `100 Continue` before it sends its body. */
  handleExpecting(incoming: IncomingMessage, outgoing: ServerResponse): void;
  /** Handles a request with another expectation. Returns false to answer 417. */
  handleUnknownExpectation?(incoming: IncomingMessage, outgoing: ServerResponse): boolean;
  /** Called with the reason and the client's network when a connection is closed at once. */
  refusedConnection(reason: string, address: string): void;
  /** Default: requests to switch protocols are handled like any other, and CONNECT closes its connection. */
  readonly connections?: ConnectionHandler;
}

/** Takes over connections from HTTP. */
export interface ConnectionHandler {
  /** True if a request can switch to another protocol; otherwise it is handled like any other. */
  isUpgrade(incoming: IncomingMessage): boolean;
  /**
   * Handles such a request, or CONNECT.
   * @param outgoing a response that is not attached to that connection yet
   * @param head the bytes that the client sent after it
   */
  handleConnection(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    connection: { socket: Duplex; head: Buffer },
  ): void;
}

/** A server that accepts requests. It can be stopped, and use another certificate. */
export interface StartedServer {
  /** Its URL, such as `http://127.0.0.1:4000`; `unix:/run/svc-api.sock` on a Unix socket. */
  readonly url: string;
  /**
   * Uses a certificate from other files for new connections. A server with plain HTTP cannot.
   * @returns true if it uses TLS
   * @throws KeysError TLS_INVALID, and keeps its own
   */
  replaceCertificate(files: CertificateFiles): Promise<boolean>;
  /**
   * Stops accepting connections, and resolves once the requests in flight have ended. They are aborted after `graceMs`
   * milliseconds. Default: 10 seconds. Kept connections have half a second of that for one more request each.
   */
  stop(graceMs?: number): Promise<void>;
}

/** The longest time between Node's checks for requests that take too long to arrive. */
const CHECK_MS = 500;
/**
 * Proxies keep connections for 60 seconds. A server that closes one earlier may do so while a request is on its way.
 */
const KEEP_ALIVE_MS = 75_000;
const STOP_GRACE_MS = 10_000;
/** How long a kept connection can bring another request after the server stops, since one may be on its way. */
const LAST_REQUEST_MS = 500;

/**
 * Starts an HTTP server.
 * @throws KeysError LISTEN_FAILED if the address is not available; TLS_INVALID for a certificate that cannot be used
 */
export async function serveRequests(
  handler: RequestHandler,
  { tls, limits = {}, log = NO_LOG, keepAliveMs = KEEP_ALIVE_MS, watchers = [], ...address }: ServerOptions,
): Promise<StartedServer> {
  const certificate = tls && new CertificateWatch(tls, log);
  const { headersMs = 10_000, requestMs = 30_000 } = limits;
  const { connections: taking } = handler;
  const stopping = new AbortController();
  const settings = {
    ServerResponse: responseClass(new UnreadAnswers(limits), stopping.signal),
    // Node's defaults would keep slow clients for minutes.
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    handshakeTimeout: headersMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, headersMs),
    keepAliveTimeout: keepAliveMs,
    // The handler refuses requests without a Host, since Node's own reply has no body.
    requireHostHeader: false,
    ...(taking && { shouldUpgradeCallback: (incoming: IncomingMessage) => taking.isUpgrade(incoming) }),
  };
  const server = certificate
    ? createHttpsServer({
        ...settings,
        ...certificate.read(),
        // The handler refuses clients that need a certificate without one; browsers ask all others whether they have
        // one.
        ...(tls.clientCa !== undefined && { requestCert: true, rejectUnauthorized: false }),
      })
    : createHttpServer(settings);
  // Some versions of Node silently drop headers after the 1,000th. All together have at most 16 KiB.
  server.maxHeadersCount = 0;
  const note = notingFor(handler, watchers);
  const begin = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    note(incoming, outgoing);
    handler.handle(incoming, outgoing);
  };
  const beginExpecting = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    note(incoming, outgoing);
    handler.handleExpecting(incoming, outgoing);
  };
  server.on('request', (incoming, outgoing) => beginInOrder(begin, incoming, outgoing));
  server.on('checkContinue', (incoming, outgoing) => beginInOrder(beginExpecting, incoming, outgoing));
  server.on('clientError', (error, socket) => {
    const answered = answerInvalidRequest(error, socket);
    if (answered) for (const watcher of watchers) watcher.unread({ ...answered, address: peerOf(socket as Socket) });
  });
  server.on('checkExpectation', (incoming, outgoing) => {
    note(incoming, outgoing);
    if (!handler.handleUnknownExpectation?.(incoming, outgoing)) refuseExpectation(incoming, outgoing);
  });
  for (const event of taking ? (['upgrade', 'connect'] as const) : []) {
    server.on(event, (incoming, socket, head) => {
      const outgoing = new IdentifiedResponse(incoming);
      note(incoming, outgoing);
      taking!.handleConnection(incoming, outgoing, { socket, head });
    });
  }
  const connections = new Connections(server, limits, (...refused) => handler.refusedConnection(...refused));
  await startListening(server, address);
  const at = server.address();
  if (address.host === '::' && typeof at === 'object' && at?.family === 'IPv4')
    log.warn({ host: at.address }, 'this machine has no IPv6: the server listens on all addresses of IPv4');
  server.on('error', (error) => log.error({ err: error }, 'a connection was not accepted'));
  certificate?.start(server as HttpsServer);
  return {
    url: formatUrl(server, tls ? 'https' : 'http', address),
    async replaceCertificate(files) {
      certificate?.replace(files, server as HttpsServer);
      return certificate !== undefined;
    },
    async stop(graceMs = STOP_GRACE_MS) {
      certificate?.end();
      stopping.abort();
      await stop(server, connections, graceMs);
    },
  };
}

/** The number of requests of a connection that wait for earlier ones. */
const waitingRequests = new WeakMap<Socket, number>();

/**
 * Begins a request once its client's earlier ones on the same connection are answered (RFC 9112, section 9.3.2), and
 * stops reading from the connection until then: otherwise one client could have all of them computed and held at the
 * same time.
 */
function beginInOrder(begin: RequestHandler['handle'], incoming: IncomingMessage, outgoing: ServerResponse): void {
  // Node attaches the connection to the response whose turn it is.
  if (outgoing.socket) {
    begin(incoming, outgoing);
    return;
  }
  const { socket } = incoming;
  const count = (change: number) => {
    const waiting = (waitingRequests.get(socket) ?? 0) + change;
    waitingRequests.set(socket, waiting);
    return waiting;
  };
  count(1);
  // Node resumes reading at the end of each request.
  void setImmediate().then(() => count(0) > 0 && socket.pause());
  outgoing.once('socket', () => {
    if (count(-1) === 0) socket.resume();
    begin(incoming, outgoing);
  });
}

async function stop(server: Server, connections: Connections, graceMs: number): Promise<void> {
  const deadline = setTimeout(() => connections.closeAll(), graceMs);
  // Connections that are established already are accepted in the next turns.
  const turns = graceMs > 0 ? 2 : 0;
  for (let turn = 0; turn < turns; turn += 1) await setImmediate();
  let sweep: NodeJS.Timeout | undefined;
  const beginToSweep = setTimeout(
    () => {
      // A connection whose request has just ended is kept for another one, which must not come.
      sweep = setInterval(() => {
        server.closeIdleConnections();
        connections.closeSilent();
      }, 50);
    },
    Math.min(LAST_REQUEST_MS, graceMs),
  );
  await new Promise((resolve) => {
    // node:http's own `close` closes idle connections at once. Servers of Deno are not node:net's, and have only that
    // one.
    if ((server as object) instanceof NetServer) NetServer.prototype.close.call(server, resolve);
    else server.close(resolve);
  });
  for (const timer of [deadline, beginToSweep, sweep]) clearTimeout(timer);
  // Also stops the timers of node:http.
  server.close(() => {});
}
