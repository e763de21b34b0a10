import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { type Log, NO_LOG } from '../log.ts';
import type { CertificateFiles } from './certificate.ts';
import { CertificateWatch } from './certificate-watch.ts';
import { peerOf } from './client-address.ts';
import { type ConnectionLimits, Connections } from './connections.ts';
import { IdentifiedResponse } from './identified-response.ts';
import { LastAnswers } from './last-answers.ts';
import { type ListenAddress, startListening, urlOf } from './listen-address.ts';
import { answerInvalidRequest, refuseExpectation } from './refused-requests.ts';
import { responseClass, UnreadAnswers, type UnreadLimits } from './unread-answers.ts';
import type { RequestWatcher } from './watched-request.ts';
import { notingFor, type RequestPlaces } from './watched-requests.ts';

/** Where requests are served, and what clients may take. */
export type ServerOptions = ListenAddress & {
  /** The certificate, for TLS. It is taken anew when its files change. Default: plain HTTP. */
  tls?: CertificateFiles;
  /** How long a connection is kept after an answer, in milliseconds. Default: 75,000, longer than proxies keep one. */
  keepAliveMs?: number;
  /** What clients may take, where it differs from the default. */
  limits?: ServerLimits;
  /** Logs what becomes of the certificate. Default: nothing is logged. */
  log?: Log;
  /** Are told of each request. */
  watchers?: readonly RequestWatcher[];
};

/** What clients may take of a server, in connections, time and memory. */
export interface ServerLimits extends ConnectionLimits, UnreadLimits {
  /** How long the head of a request may take to arrive, in milliseconds. Default: 10,000. */
  headersMs?: number;
  /** How long a whole request may take to arrive, in milliseconds; 0 for any time. Default: 30,000. */
  requestMs?: number;
}

/** What answers the requests of a server. */
export interface RequestHandler extends RequestPlaces {
  handle(incoming: IncomingMessage, outgoing: ServerResponse): void;
  /** Handles a request whose client waits for `100 Continue` before it sends its body. */
  handleExpecting(incoming: IncomingMessage, outgoing: ServerResponse): void;
  /** Handles a request that expects something else, unless it is to be answered 417; returns whether it has. */
  handleUnknownExpectation?(incoming: IncomingMessage, outgoing: ServerResponse): boolean;
  /** Is told why a connection was closed at once, and where it came from. */
  refusedConnection(reason: string, address: string): void;
  /** Default: a request to switch to another protocol is handled as any other, and CONNECT ends its connection. */
  readonly connections?: ConnectionHandler;
}

/** What takes connections from HTTP. */
export interface ConnectionHandler {
  /** Whether a request may switch to another protocol; otherwise it is handled as any other. */
  isUpgrade(incoming: IncomingMessage): boolean;
  /**
   * Handles such a request, or CONNECT.
   * @param outgoing a response that is not on that connection yet
   * @param head what the client has sent behind it
   */
  handleConnection(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    connection: { socket: Duplex; head: Buffer },
  ): void;
}

/** A server that accepts requests. */
export interface StartedServer {
  /** Its URL, such as `http://127.0.0.1:4000`; `unix:/run/svc-api.sock` on a Unix socket. */
  readonly url: string;
  /**
   * Takes a certificate from other files for new connections. One that speaks plain HTTP cannot.
   * @returns whether it speaks TLS
   * @throws KeysError TLS_INVALID; then it keeps its own
   */
  replaceCertificate(files: CertificateFiles): Promise<boolean>;
  /**
   * Stops accepting connections, and resolves once the requests in flight have ended. They are aborted after `graceMs`
   * milliseconds. Default: 10 seconds. Connections that are kept have half a second of it for one more request each.
   */
  stop(graceMs?: number): Promise<void>;
}

/** How often Node looks for requests that take too long to arrive, at most. */
const CHECK_MS = 500;
/** Proxies keep connections for 60 seconds. A server that closes one first does so while a request is on its way. */
const KEEP_ALIVE_MS = 75_000;
const STOP_GRACE_MS = 10_000;
/** How long a connection that is kept may bring another request once the server stops: it may be on its way. */
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
  const settings = {
    ServerResponse: responseClass(new UnreadAnswers(limits)),
    // Node's defaults would keep slow clients for minutes.
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    handshakeTimeout: headersMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, headersMs),
    keepAliveTimeout: keepAliveMs,
    // The handler refuses a request without a Host: Node's own reply has no body.
    requireHostHeader: false,
    ...(taking && { shouldUpgradeCallback: (incoming: IncomingMessage) => taking.isUpgrade(incoming) }),
  };
  const server = certificate
    ? createHttpsServer({ ...settings, ...(await certificate.read()) })
    : createHttpServer(settings);
  // Some versions of Node drop the headers after the 1,000th without a word. All together have at most 16 KiB.
  server.maxHeadersCount = 0;
  const note = notingFor(handler, watchers);
  server.on('request', (incoming, outgoing) => {
    note(incoming, outgoing);
    handler.handle(incoming, outgoing);
  });
  server.on('checkContinue', (incoming, outgoing) => {
    note(incoming, outgoing);
    handler.handleExpecting(incoming, outgoing);
  });
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
  server.on('error', (error) => log.error({ err: error }, 'a connection was not accepted'));
  certificate?.start(server as HttpsServer);
  return {
    url: urlOf(server, tls ? 'https' : 'http', address),
    async replaceCertificate(files) {
      await certificate?.replace(files, server as HttpsServer);
      return certificate !== undefined;
    },
    async stop(graceMs = STOP_GRACE_MS) {
      certificate?.end();
      await stop(server, connections, graceMs);
    },
  };
}

async function stop(server: Server, connections: Connections, graceMs: number): Promise<void> {
  const deadline = setTimeout(() => connections.closeAll(), graceMs);
  new LastAnswers(server, connections.carriers()); // oxlint-disable-line no-new -- it listens
  // Those that are made already are accepted in the turns to come.
  const turns = graceMs > 0 ? 2 : 0;
  for (let turn = 0; turn < turns; turn += 1) await setImmediate();
  let sweep: NodeJS.Timeout | undefined;
  const beginToSweep = setTimeout(
    () => {
      // A connection whose request has just ended is kept alive for another one, which must not come.
      sweep = setInterval(() => {
        server.closeIdleConnections();
        connections.closeSilent();
      }, 50);
    },
    Math.min(LAST_REQUEST_MS, graceMs),
  );
  await new Promise((resolve) => {
    // That of node:http closes idle connections at once.
    NetServer.prototype.close.call(server, resolve);
  });
  for (const timer of [deadline, beginToSweep, sweep]) clearTimeout(timer);
  // What node:http has beside the connections ends, too.
  server.close(() => {});
}
