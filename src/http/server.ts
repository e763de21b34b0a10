import { randomUUID } from 'node:crypto';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { Hono } from 'hono';
import { type CertificateFiles, CertificateWatch } from './certificate.ts';
import { type ConnectionLimits, Connections } from './connections.ts';
import { endpointOf } from './endpoints.ts';
import { REQUEST_ID } from './request-notes.ts';
import { IdentifiedResponse, isAnswering, responseClass, UnreadAnswers, type UnreadLimits } from './responses.ts';
import { notingFor, type RequestPlaces, type RequestWatcher } from './watched-request.ts';
import { type ListenAddress, startListening, formatUrl } from './listen-address.ts';
import { ClientAddresses, peerOf } from './client-address.ts';
import { headerValue, isDecodable } from './received.ts';
import { errorBody, REPLY_HEADERS, type ReplyCode, statusOf } from './replies.ts';
import { type Log, NO_LOG } from '../log.ts';
import type { ServiceApp } from './app.ts';
import { COMMON_OPTIONS } from './bearer-options.ts';
import { isOldHealthCheck } from './plain-endpoints.ts';
import { isForProxies } from './shortcut.ts';
import {
  amount,
  anything,
  checkOptions,
  count,
  duration,
  having,
  invalidOption,
  list,
  options as optionsIn,
  required,
  type Rules,
  text,
} from '../keys/basics/index.ts';

/** How long the client of a refused request can read the answer: closing at once might lose it. */
const REFUSED_LINGER_MS = 200;

/** Connections whose refusal is being sent. */
const refusedConnections = new WeakSet<Duplex>();

/** An error of Node's parser, with the bytes. */
type ParserError = NodeJS.ErrnoException & { rawPacket?: Buffer };

/** True if the refused bytes are the start of a proxy's request, which takes only 403 for a refusal. */
function isOfProxy({ rawPacket }: ParserError): boolean {
  const [, url = ''] = rawPacket?.toString('latin1', 0, 40).split(' ') ?? [];
  return isForProxies(url);
}

/**
 * Replies to input that Node's parser refuses, such as headers that are too large, in the form of all other errors.
 * Closes the connection, which the client may never do.
 * @returns the status, and an id for a request without one; undefined if no answer is possible
 */
function answerInvalidRequest(error: ParserError, socket: Duplex): { id: string; status: number } | undefined {
  // The parser also reports the input after the refused one.
  if (refusedConnections.has(socket)) return undefined;
  // An error of TLS cannot be answered in HTTP.
  const isHttp = error.code?.startsWith('HPE_') || error.code?.startsWith('ERR_HTTP_');
  if (!isHttp || !socket.writable || isAnswering(socket)) {
    socket.destroy();
    return undefined;
  }
  refusedConnections.add(socket);
  const [code, message]: readonly [code: ReplyCode, message: string] = isOfProxy(error)
    ? ['FORBIDDEN', 'The request is not valid HTTP.']
    : error.code === 'HPE_HEADER_OVERFLOW'
      ? ['HEADERS_TOO_LARGE', 'The headers are too large.']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['TIMEOUT', 'The request took too long to arrive.']
        : ['BAD_REQUEST', 'The request is not valid HTTP.'];
  const status = statusOf(code);
  const body = JSON.stringify(errorBody(message, code));
  const id = randomUUID();
  const headers = Object.entries({ ...lastHeaders(body), [REQUEST_ID]: id });
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...headers.map((header) => header.join(': '))];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  setTimeout(() => socket.destroy(), REFUSED_LINGER_MS);
  return { id, status };
}

/** Dot segments: a proxy may resolve them differently than we do. */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/**
 * Refuses a request that a proxy in front may have interpreted differently: with two Hosts (RFC 9112, section 3.2), a
 * path that is not UTF-8 or has dot segments, or a body with a transfer coding (section 6.1), which is not read.
 * @returns true if it was refused
 */
function refuseAmbiguous({ rawHeaders, url = '' }: IncomingMessage, outgoing: ServerResponse): boolean {
  const coding = headerValue(rawHeaders, 'transfer-encoding');
  const path = url.split('?', 1)[0]!;
  const isOneAddress = !headerValue(rawHeaders, 'host')?.includes(',') && isDecodable(path) && !DOT_SEGMENT.test(path);
  if (isOneAddress && (coding === undefined || coding.toLowerCase() === 'chunked')) return false;
  const message = isOneAddress ? 'Only "Transfer-Encoding: chunked" is supported.' : 'The Host or target is invalid.';
  answerLast(outgoing, 'BAD_REQUEST', message);
  return true;
}

/** Refuses an Expect other than 100-continue (RFC 9110, section 10.1.1), without reading the body. */
function refuseExpectation(_incoming: IncomingMessage, outgoing: ServerResponse): void {
  answerLast(outgoing, 'EXPECTATION_FAILED', 'Only "Expect: 100-continue" is supported.');
}

/** Refuses a request, and closes the connection after the answer. */
function answerLast(outgoing: ServerResponse, code: ReplyCode, message: string): void {
  const body = JSON.stringify(errorBody(message, code));
  outgoing.writeHead(statusOf(code), lastHeaders(body));
  outgoing.end(body);
}

/** The headers of a refusal that closes the connection. */
function lastHeaders(body: string): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    ...REPLY_HEADERS,
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  };
}

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

/** A server that accepts requests. */
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
        ...(await certificate.read()),
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
      await certificate?.replace(files, server as HttpsServer);
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

/**
 * Sends `100 Continue` (RFC 9110, section 10.1.1) only when the body is read. A request that is refused before that
 * gets its answer instead, and the connection is closed, as the body may or may not arrive.
 */
function continueWhenRead(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const read = incoming._read.bind(incoming);
  const { shouldKeepAlive } = outgoing;
  outgoing.shouldKeepAlive = false;
  incoming._read = (size) => {
    incoming._read = read;
    // An unread body is discarded after the answer.
    if (!outgoing.headersSent && !outgoing.destroyed) {
      outgoing.shouldKeepAlive = shouldKeepAlive;
      outgoing.writeContinue();
    }
    read(size);
  };
}

/**
 * The Fetch API for Node takes 10 MB, so it is loaded on first use: GraphQL, requests of proxies, health checks and a
 * guard do without it.
 */
type NodeServer = typeof import('@hono/node-server');
type FetchCallback = Parameters<NodeServer['getRequestListener']>[0];
type Answer = (incoming: IncomingMessage, outgoing: ServerResponse) => unknown;

/** Replies to requests that cannot be converted, such as those with an invalid Host, and to errors of an app. */
function listenerOptions({ RequestError }: NodeServer) {
  const errorHandler = (error: unknown) =>
    error instanceof RequestError
      ? jsonAnswer('BAD_REQUEST', 'The Host or target is invalid.')
      : jsonAnswer('INTERNAL_SERVER_ERROR', 'Internal server error');
  return { errorHandler, overrideGlobalObjects: false };
}

/** Answers requests of Node through an app that is not a whole server. */
// oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
export async function listenerOf(app: Hono<any>): Promise<Answer> {
  const nodeServer = await import('@hono/node-server');
  return nodeServer.getRequestListener(app.fetch, listenerOptions(nodeServer));
}

/** An app, for a server. */
class ServedApp {
  /** The service's own parts; other apps have none. */
  readonly service: Partial<ServiceApp>;
  /** Determines the addresses of clients. */
  readonly clients: ClientAddresses;
  readonly #fetch: FetchCallback;
  #answer: Answer | undefined;

  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  constructor(app: Hono<any>) {
    this.service = app as Partial<ServiceApp>;
    this.clients = this.service.addresses ?? new ClientAddresses();
    this.#fetch = app.fetch;
  }

  /** Answers a request of a proxy. Returns false for any other. */
  answerProxy(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    return isForProxies(incoming.url!) && this.#answerDirectly(incoming, outgoing);
  }

  handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    if (this.#answerDirectly(incoming, outgoing) || refuseAmbiguous(incoming, outgoing)) return;
    if (this.#answer) this.#answer(incoming, outgoing);
    else
      this.#load().then(
        (answer) => answer(incoming, outgoing),
        () => outgoing.destroy(),
      );
  }

  #answerDirectly(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    return this.service.shortcut?.(incoming, outgoing) ?? false;
  }

  /** Loads the listener for the app itself, with the first request that needs it. */
  async #load(): Promise<Answer> {
    const nodeServer = await import('@hono/node-server');
    const options = listenerOptions(nodeServer);
    const answer = nodeServer.getRequestListener(this.#fetch, options);
    const answerWithoutHost = nodeServer.getRequestListener(this.#fetch, { ...options, hostname: 'localhost' });
    return (this.#answer ??= (incoming, outgoing) =>
      (isOldHealthCheck(incoming) ? answerWithoutHost : answer)(incoming, outgoing));
  }

  /** Logs counted repetitions. */
  finishLogs(): void {
    this.service.refusals?.finish();
    this.service.failures?.finish();
  }
}

function jsonAnswer(code: ReplyCode, message: string): Response {
  return Response.json(errorBody(message, code), { status: statusOf(code), headers: REPLY_HEADERS });
}

/** The app to serve, and where. */
export type ListenOptions = ServerOptions & {
  /** A Hono app, such as that of `createApp`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  app: Hono<any>;
};

/** A server that accepts requests. */
export interface RunningServer extends StartedServer {
  /** Serves another app from the next request on. Requests in flight are finished by the previous one. */
  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  replaceApp(app: Hono<any>): void;
}

/** The options of all kinds of addresses. */
type AnyListenOptions = { [Name in keyof ListenOptions]?: ListenOptions[Name] } & Pick<ListenOptions, 'app'>;
const OPTIONS: Rules<AnyListenOptions> = {
  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  app: required(having<Hono<any>>('a Hono app, such as one from createApp', 'fetch')),
  host: text,
  port: amount,
  socket: text,
  fd: amount,
  tls: optionsIn<CertificateFiles>({ cert: required(text), key: required(text), clientCa: text }),
  keepAliveMs: duration,
  limits: optionsIn<ServerLimits>({
    headersMs: amount,
    requestMs: amount,
    connections: count,
    connectionsPerAddress: count,
    unreadMs: amount,
    unreadBytes: amount,
  }),
  log: COMMON_OPTIONS.log,
  watchers: list(anything),
};

/**
 * Starts an HTTP server.
 * @throws KeysError OPTION_INVALID; LISTEN_FAILED if the address is not available; TLS_INVALID for a certificate that
 *   cannot be used
 * @example
 * const server = await listen({ app, host: '127.0.0.1', port: 0 });
 * await server.stop();
 */
export async function listen(given: ListenOptions): Promise<RunningServer> {
  checkOptions('listen', given, OPTIONS);
  const { app, ...options } = given;
  const { socket, ...others } = options as AnyListenOptions;
  const rival = (['host', 'port'] as const).find((name) => name in others);
  if (socket !== undefined && rival)
    throw invalidOption('listen', `"socket" and "${rival}" exclude one another. Give one of them.`);
  let served = new ServedApp(app);
  const server = await serveRequests(
    {
      get clients() {
        return served.clients;
      },
      endpointOf: ({ url }) => endpointOf(url),
      handle: (incoming, outgoing) => served.handle(incoming, outgoing),
      handleExpecting: (incoming, outgoing) => {
        continueWhenRead(incoming, outgoing);
        served.handle(incoming, outgoing);
      },
      handleUnknownExpectation: (incoming, outgoing) => served.answerProxy(incoming, outgoing),
      refusedConnection: (reason, address) => served.service.refusals?.add('connection refused', { reason, address }),
    },
    options,
  );
  return {
    url: server.url,
    replaceApp(next) {
      const previous = served;
      served = new ServedApp(next);
      // An app that replaces this one may continue its counts.
      if (previous.service.refusals !== served.service.refusals) previous.finishLogs();
    },
    replaceCertificate: (files) => server.replaceCertificate(files),
    async stop(graceMs) {
      await server.stop(graceMs);
      served.finishLogs();
    },
  };
}
