import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener, RequestError } from '@hono/node-server';
import type { Hono } from 'hono';
import { KeysError } from '../keys/errors.ts';
import type { ServiceApp } from './app.ts';
import type { ReplyCode } from './error-codes.ts';
import { errorBody, NO_STORE } from './replies.ts';
import type { FastPath } from './fast-path.ts';

/** What to serve, and where. */
export interface ListenOptions {
  /** A Hono app, such as that of `createApp`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  app: Hono<any>;
  /** A host name or address of this machine. */
  host: string;
  /** The port; 0 picks a free one. */
  port: number;
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

/** Timeouts for slow clients, in milliseconds. Node's defaults would keep them for minutes. */
const TIMEOUTS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 5_000,
};
const STOP_GRACE_MS = 10_000;

/**
 * Starts an HTTP server.
 * @throws KeysError LISTEN_FAILED if the address is not available
 * @example
 * const server = await listen({ app, host: '127.0.0.1', port: 0 });
 * await server.stop();
 */
export async function listen({ app, host, port }: ListenOptions): Promise<RunningServer> {
  const answer = getRequestListener(app.fetch, { errorHandler: answerFailedRequest, overrideGlobalObjects: false });
  // The app refuses a request without a Host: Node's own reply has no body.
  const fastPath: FastPath = (app as Partial<ServiceApp>).fastPath ?? ((_incoming, _outgoing, next) => next());
  const server = createServer({ ...TIMEOUTS, requireHostHeader: false }, (incoming, outgoing) =>
    fastPath(incoming, outgoing, () => void answer(incoming, outgoing)),
  );
  server.on('clientError', answerInvalidRequest);
  server.on('checkExpectation', refuseExpectation);
  const open = new Set<Socket>();
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenError(error, host, port)));
    server.listen(port, host, resolve);
  });
  return {
    url: urlOf(server.address() as AddressInfo),
    stop: (graceMs = STOP_GRACE_MS) => stop(server, open, graceMs),
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

/** Replies to what cannot become a request for the app, such as an invalid Host, and to errors that escape the app. */
function answerFailedRequest(error: unknown): Response {
  return error instanceof RequestError
    ? Response.json(errorBody('The Host or target is invalid.', 'BAD_REQUEST'), { status: 400, headers: NO_STORE })
    : Response.json(errorBody('Internal server error', 'INTERNAL_SERVER_ERROR'), { status: 500, headers: NO_STORE });
}

/** Replies to what Node's parser refuses, such as headers that are too large, in the form of all other errors. */
function answerInvalidRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const [status, code, message]: readonly [status: string, code: ReplyCode, message: string] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE', 'The headers are too large.']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'TIMEOUT', 'The request took too long to arrive.']
        : ['400 Bad Request', 'BAD_REQUEST', 'The request is not valid HTTP.'];
  const body = JSON.stringify(errorBody(message, code));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** Refuses an Expect other than 100-continue (RFC 9110, section 10.1.1), without reading the body. */
function refuseExpectation(_incoming: IncomingMessage, outgoing: ServerResponse): void {
  const body = JSON.stringify(errorBody('Only "Expect: 100-continue" is supported.', 'EXPECTATION_FAILED'));
  outgoing.writeHead(417, {
    'Content-Type': 'application/json',
    ...NO_STORE,
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  });
  outgoing.end(body);
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
