import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { RequestError } from '@hono/node-server';
import type { ReplyCode } from './error-codes.ts';
import { errorBody, NO_STORE } from './replies.ts';
import { isAnswering } from './unread-answers.ts';

/** How long the client of a refused request gets to read the answer: closed at once, it might lose that. */
const LINGER_MS = 200;

/** Connections whose refusal is on its way. */
const refused = new WeakSet<Duplex>();

/** Replies to what cannot become a request for the app, such as an invalid Host, and to errors that escape the app. */
export function answerFailedRequest(error: unknown): Response {
  return error instanceof RequestError
    ? Response.json(errorBody('The Host or target is invalid.', 'BAD_REQUEST'), { status: 400, headers: NO_STORE })
    : Response.json(errorBody('Internal server error', 'INTERNAL_SERVER_ERROR'), { status: 500, headers: NO_STORE });
}

/**
 * Replies to what Node's parser refuses, such as headers that are too large, in the form of all other errors. Closes
 * the connection: the client may never do so.
 */
export function answerInvalidRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  // The parser goes on to refuse what comes after that.
  if (refused.has(socket)) return;
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) return void socket.destroy();
  refused.add(socket);
  const [status, code, message]: readonly [status: string, code: ReplyCode, message: string] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE', 'The headers are too large.']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'TIMEOUT', 'The request took too long to arrive.']
        : ['400 Bad Request', 'BAD_REQUEST', 'The request is not valid HTTP.'];
  const body = JSON.stringify(errorBody(message, code));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nCache-Control: ${NO_STORE['Cache-Control']}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  setTimeout(() => socket.destroy(), LINGER_MS);
}

/** Refuses an Expect other than 100-continue (RFC 9110, section 10.1.1), without reading the body. */
export function refuseExpectation(_incoming: IncomingMessage, outgoing: ServerResponse): void {
  const body = JSON.stringify(errorBody('Only "Expect: 100-continue" is supported.', 'EXPECTATION_FAILED'));
  outgoing.writeHead(417, {
    'Content-Type': 'application/json',
    ...NO_STORE,
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  });
  outgoing.end(body);
}
