import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Hono } from 'hono';
import type { ServiceApp } from './app.ts';
import { COMMON_OPTIONS } from './bearer-options.ts';
import type { CertificateFiles } from './certificate.ts';
import { answerByNode, answersOfTurn, DirectRoutes } from './adapters.ts';
import { isOldHealthCheck } from './plain-endpoints.ts';
import { ClientAddresses } from './received.ts';
import { errorBody, REPLY_HEADERS, type ReplyCode } from './replies.ts';
import {
  refuseAmbiguous,
  serveRequests,
  type ServerLimits,
  type ServerOptions,
  type StartedServer,
} from './serve-requests.ts';
import { endpointOf } from './watched-request.ts';
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

/**
 * Tells a client that waits for it to send its body (RFC 9110, section 10.1.1) once that is to be read. One that is
 * refused before gets its answer instead, and the connection is closed: whether the body still comes is unknown.
 */
function continueWhenRead(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const read = incoming._read.bind(incoming);
  const { shouldKeepAlive } = outgoing;
  outgoing.shouldKeepAlive = false;
  incoming._read = (size) => {
    incoming._read = read;
    // What was not read is thrown away after the answer.
    if (!outgoing.headersSent && !outgoing.destroyed) {
      outgoing.shouldKeepAlive = shouldKeepAlive;
      outgoing.writeContinue();
    }
    read(size);
  };
}

/**
 * What makes a request and an answer of the Fetch API. Node takes 10 MB for that, so it is loaded on use: GraphQL, what
 * proxies ask, health checks and a guard do without.
 */
type NodeServer = typeof import('@hono/node-server');
type FetchCallback = Parameters<NodeServer['getRequestListener']>[0];
type Answer = (incoming: IncomingMessage, outgoing: ServerResponse) => unknown;

/** How an app gets requests: what cannot become one, such as an invalid Host, and its errors are replied to. */
function listenerOptions({ RequestError }: NodeServer) {
  const errorHandler = (error: unknown) =>
    error instanceof RequestError
      ? jsonAnswer(400, 'The Host or target is invalid.', 'BAD_REQUEST')
      : jsonAnswer(500, 'Internal server error', 'INTERNAL_SERVER_ERROR');
  return { errorHandler, overrideGlobalObjects: false };
}

/** What answers requests as Node has them by an app that is no whole server. */
// oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
export async function listenerOf(app: Hono<any>): Promise<Answer> {
  const nodeServer = await import('@hono/node-server');
  return nodeServer.getRequestListener(app.fetch, listenerOptions(nodeServer));
}

/** An app as a server hands requests to it. */
class ServedApp {
  /** See `ServiceApp`; other apps have none. */
  readonly logs: Partial<Pick<ServiceApp, 'refusals' | 'failures'>>;
  /** See `ServiceApp`. */
  readonly answerProxy: ServiceApp['answerProxy'];
  /** Finds out where requests come from. */
  readonly clients: ClientAddresses;
  readonly #routes: DirectRoutes;
  readonly #fetch: FetchCallback;
  #answer: Answer | undefined;

  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  constructor(app: Hono<any>) {
    this.logs = app as Partial<ServiceApp>;
    this.answerProxy = (app as Partial<ServiceApp>).answerProxy ?? (() => false);
    this.clients = (app as Partial<ServiceApp>).addresses ?? new ClientAddresses();
    this.#routes = new DirectRoutes(app);
    const hold = (answer: Response) => answersOfTurn.hold(answer);
    this.#fetch = (...asked) => {
      const answer = app.fetch(...(asked as Parameters<typeof app.fetch>));
      return answer instanceof Promise ? answer.then(hold) : hold(answer);
    };
  }

  handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    if (this.answerProxy(incoming, outgoing)) return;
    const answerer = this.#routes.find(incoming);
    if (answerer && answerByNode(answerer, incoming, outgoing)) return;
    if (refuseAmbiguous(incoming, outgoing)) return;
    if (this.#answer) this.#answer(incoming, outgoing);
    else
      this.#load().then(
        (answer) => answer(incoming, outgoing),
        () => outgoing.destroy(),
      );
  }

  /** Loads what answers by the app itself, with the first request that asks for it. */
  async #load(): Promise<Answer> {
    const nodeServer = await import('@hono/node-server');
    const options = listenerOptions(nodeServer);
    const answer = nodeServer.getRequestListener(this.#fetch, options);
    const answerWithoutHost = nodeServer.getRequestListener(this.#fetch, { ...options, hostname: 'localhost' });
    return (this.#answer ??= (incoming, outgoing) =>
      (isOldHealthCheck(incoming) ? answerWithoutHost : answer)(incoming, outgoing));
  }

  /** Logs what was only counted. */
  finishLogs(): void {
    this.logs.refusals?.finish();
    this.logs.failures?.finish();
  }
}

function jsonAnswer(status: number, message: string, code: ReplyCode): Response {
  return Response.json(errorBody(message, code), { status, headers: REPLY_HEADERS });
}

/** What to serve, and where. */
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
  app: required(having<Hono<any>>('an app of Hono, such as createApp gives', 'fetch')),
  host: text,
  port: amount,
  socket: text,
  fd: amount,
  tls: optionsIn<CertificateFiles>({ cert: required(text), key: required(text) }),
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
      refusedConnection: (reason, address) => served.logs.refusals?.add('connection refused', { reason, address }),
    },
    options,
  );
  return {
    url: server.url,
    replaceApp(next) {
      const previous = served;
      served = new ServedApp(next);
      // One that takes its place may log on in the same sums.
      if (previous.logs.refusals !== served.logs.refusals) previous.finishLogs();
    },
    replaceCertificate: (files) => server.replaceCertificate(files),
    async stop(graceMs) {
      await server.stop(graceMs);
      served.finishLogs();
    },
  };
}
