import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { KeysError } from '../keys/errors.ts';
import type { ServiceApp } from './app.ts';
import { type ConnectionLimits, Connections } from './connections.ts';
import { GraphQLRoutes } from './graphql-routes.ts';
import { answerByNode } from './node-adapter.ts';
import { answerFailedRequest, answerInvalidRequest, refuseExpectation } from './refused-requests.ts';
import { responseClass, UnreadAnswers, type UnreadLimits } from './unread-answers.ts';

/** What to serve, and where. */
export interface ListenOptions {
  /** A Hono app, such as that of `createApp`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  app: Hono<any>;
  /** A host name or address of this machine. */
  host: string;
  /** The port; 0 picks a free one. */
  port: number;
  /** What clients may take, where it differs from the default. */
  limits?: ServerLimits;
}

/** A server that accepts requests. */
export interface RunningServer {
  /** Its URL, such as `http://127.0.0.1:4000`. */
  url: string;
  /**
   * Stops accepting requests, and resolves once those in flight have ended. They are aborted after `graceMs`
   * milliseconds. Default: 10 seconds.
   */
  stop(graceMs?: number): Promise<void>;
}

/** What clients may take of a server, in connections, time and memory. */
export interface ServerLimits extends ConnectionLimits, UnreadLimits {
  /** How long the head of a request may take to arrive, in milliseconds. Default: 10,000. */
  headersMs?: number;
  /** How long a whole request may take to arrive, in milliseconds. Default: 30,000. */
  requestMs?: number;
}

/** How often Node looks for requests that take too long to arrive, at most. */
const CHECK_MS = 500;
const KEEP_ALIVE_MS = 5000;
const STOP_GRACE_MS = 10_000;

/**
 * Starts an HTTP server.
 * @throws KeysError LISTEN_FAILED if the address is not available
 * @example
 * const server = await listen({ app, host: '127.0.0.1', port: 0 });
 * await server.stop();
 */
export async function listen({ app, host, port, limits = {} }: ListenOptions): Promise<RunningServer> {
  const answer = getRequestListener(app.fetch, { errorHandler: answerFailedRequest, overrideGlobalObjects: false });
  const { refusals, failures } = app as Partial<ServiceApp>;
  const pipelines = new GraphQLRoutes(app);
  const { headersMs = 10_000, requestMs = 30_000 } = limits;
  const options = {
    ServerResponse: responseClass(new UnreadAnswers(limits)),
    // Node's defaults would keep slow clients for minutes.
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, headersMs),
    keepAliveTimeout: KEEP_ALIVE_MS,
    // The app refuses a request without a Host: Node's own reply has no body.
    requireHostHeader: false,
  };
  const server = createServer(options, (incoming, outgoing) => {
    const pipeline = pipelines.find(incoming);
    if (!pipeline || !answerByNode(pipeline, incoming, outgoing)) void answer(incoming, outgoing);
  });
  server.on('clientError', answerInvalidRequest);
  server.on('checkExpectation', refuseExpectation);
  const { open } = new Connections(server, limits, refusals);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenError(error, host, port)));
    server.listen(port, host, resolve);
  });
  return {
    url: urlOf(server.address() as AddressInfo),
    async stop(graceMs = STOP_GRACE_MS) {
      await stop(server, open, graceMs);
      refusals?.finish();
      failures?.finish();
    },
  };
}

async function stop(server: Server, open: ReadonlySet<Socket>, graceMs: number): Promise<void> {
  const deadline = setTimeout(() => server.closeAllConnections(), graceMs);
  // A connection whose request has just ended is kept alive for another one, which must not come.
  const sweep = setInterval(() => {
    server.closeIdleConnections();
    // Node does not consider a connection idle on which nothing was ever received.
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
  }, 50);
  await new Promise((resolve) => {
    server.close(resolve);
  });
  clearTimeout(deadline);
  clearInterval(sweep);
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): KeysError {
  const reasons: Record<string, string> = {
    EADDRINUSE: `port ${port} is taken. Choose another with --port, or 0 for a free one`,
    EACCES: `this user may not listen on port ${port}. Choose one above 1023 with --port`,
    EADDRNOTAVAIL: `"${host}" is not an address of this machine. Choose another with --host`,
    ENOTFOUND: `there is no host "${host}". Choose another with --host`,
    EAI_AGAIN: `the host "${host}" cannot be resolved. Choose another with --host`,
  };
  const reason = reasons[error.code ?? ''] ?? `${error.code ?? 'an unknown error'} on "${host}"`;
  return new KeysError('LISTEN_FAILED', `The server cannot start: ${reason}.`, { cause: error });
}
