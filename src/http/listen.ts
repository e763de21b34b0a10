import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Hono } from 'hono';
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
import type { ServiceApp } from './app.ts';
import { COMMON_OPTIONS } from './bearer-options.ts';
import type { CertificateFiles } from './certificate.ts';
import { ClientAddresses } from './client-address.ts';
import { endpointOf } from './endpoints.ts';
import { refuseAmbiguous } from './invalid-request.ts';
import { isOldHealthCheck } from './plain-endpoints.ts';
import { errorBody, REPLY_HEADERS, type ReplyCode, statusOf } from './replies.ts';
import { serveRequests, type ServerLimits, type ServerOptions, type StartedServer } from './server.ts';
import { isForProxies } from './shortcut.ts';

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

/** A server that `listen` has started, whose app can be replaced. */
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
