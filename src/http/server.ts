import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener, RequestError } from '@hono/node-server';
import type { Hono } from 'hono';
import { KeysError } from '../keys/errors.ts';
import type { ServiceApp } from './app.ts';
import type { ReplyCode } from './error-codes.ts';
import { errorBody, NO_STORE } from './replies.ts';
import type { FastPath } from './fast-path.ts';

export interface ListenOptions {
  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  app: Hono<any>;
  host: string;
  /** 0 picks a free one. */
  port: number;
}

export interface RunningServer {
  /** Where it listens, such as `http://127.0.0.1:4000`. */
  url: string;
  /**
   * Stops accepting, and resolves when the requests in flight have ended, or were ended after `grace` milliseconds.
   */
  stop(grace?: number): Promise<void>;
}

/** Times in milliseconds after which a slow client is let go. Node's own would keep it for minutes. */
const TIMEOUTS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 5_000,
};
export const STOP_GRACE_MS = 10_000;

/** Starts an HTTP server. @throws KeysError LISTEN_FAILED when the address can't be had */
export async function listen({ app, host, port }: ListenOptions): Promise<RunningServer> {
  const answer = getRequestListener(app.fetch, { errorHandler: answerUnreadable, overrideGlobalObjects: false });
  // A request without a Host is refused by the listener: Node's own answer to it has no body.
  const fastPath: FastPath = (app as Partial<ServiceApp>).fastPath ?? ((_incoming, _outgoing, next) => next());
  const server = createServer({ ...TIMEOUTS, requireHostHeader: false }, (incoming, outgoing) =>
    fastPath(incoming, outgoing, () => void answer(incoming, outgoing)),
  );
  server.on('clientError', answerBrokenRequest);
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
  return { url: urlOf(server.address() as AddressInfo), stop: (grace = STOP_GRACE_MS) => stop(server, open, grace) };
}

async function stop(server: Server, open: ReadonlySet<Socket>, grace: number): Promise<void> {
  const end = setTimeout(() => server.closeAllConnections(), grace);
  // A connection on which a request just ended is kept alive for the next one, which must not come any more.
  const sweep = setInterval(() => {
    server.closeIdleConnections();
    // Node does not count a connection as idle on which nothing was ever sent.
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
  }, 50);
  await new Promise((resolve) => {
    server.close(resolve);
  });
  clearTimeout(end);
  clearInterval(sweep);
}

/** Answers what cannot be made a request for the app, such as a bad Host or target, and what the app itself lets fall. */
function answerUnreadable(error: unknown): Response {
  return error instanceof RequestError
    ? Response.json(errorBody('The request has no valid address.', 'BAD_REQUEST'), { status: 400, headers: NO_STORE })
    : Response.json(errorBody('Internal server error', 'INTERNAL_SERVER_ERROR'), { status: 500, headers: NO_STORE });
}

/** Answers what Node's parser refuses, such as headers that are too large, in the form of all other errors. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: import('node:stream').Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const [status, code, message]: readonly [status: string, code: ReplyCode, message: string] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE', 'The headers are larger than is allowed.']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'TIMEOUT', 'The request took too long to arrive.']
        : ['400 Bad Request', 'BAD_REQUEST', 'The request is not valid HTTP.'];
  const body = JSON.stringify(errorBody(message, code));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** Answers an Expect that is not 100-continue (RFC 9110, section 10.1.1). What it announces is not read. */
function refuseExpectation(_incoming: IncomingMessage, outgoing: ServerResponse): void {
  const body = JSON.stringify(errorBody('Only "Expect: 100-continue" is known.', 'EXPECTATION_FAILED'));
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
    EADDRNOTAVAIL: `"${host}" is no address of this machine. Choose another with --host`,
    ENOTFOUND: `there is no host "${host}". Choose another with --host`,
    EAI_AGAIN: `the host "${host}" cannot be looked up. Choose another with --host`,
  };
  const reason = reasons[error.code ?? ''] ?? `${error.code ?? 'an unknown error'} on "${host}"`;
  return new KeysError('LISTEN_FAILED', `The server cannot start: ${reason}.`, { cause: error });
}
