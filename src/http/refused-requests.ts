import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { RequestError } from '@hono/node-server';
import { isForProxies } from './for-proxies.ts';
import type { ReplyCode } from './error-codes.ts';
import { errorBody, REPLY_HEADERS } from './replies.ts';
import { headerValue, isDecodable } from './request-head.ts';
import { REQUEST_ID } from './request-id.ts';
import { isAnswering } from './unread-answers.ts';

/** How long the client of a refused request gets to read the answer: closed at once, it might lose that. */
const LINGER_MS = 200;

/** Connections whose refusal is on its way. */
const refused = new WeakSet<Duplex>();

/** Replies to what cannot become a request for the app, such as an invalid Host, and to errors that escape the app. */
export function answerFailedRequest(error: unknown): Response {
  return error instanceof RequestError
    ? Response.json(errorBody('The Host or target is invalid.', 'BAD_REQUEST'), { status: 400, headers: REPLY_HEADERS })
    : Response.json(errorBody('Internal server error', 'INTERNAL_SERVER_ERROR'), {
        status: 500,
        headers: REPLY_HEADERS,
      });
}

/** What Node says of what it could not read, with the bytes. */
type ParserError = NodeJS.ErrnoException & { rawPacket?: Buffer };

/** Whether the bytes that were refused are the start of what a proxy asks, which takes only 403 for a refusal. */
function isOfProxy({ rawPacket }: ParserError): boolean {
  const [, url = ''] = rawPacket?.toString('latin1', 0, 40).split(' ') ?? [];
  return isForProxies(url);
}

/**
 * Replies to what Node's parser refuses, such as headers that are too large, in the form of all other errors. Closes
 * the connection: the client may never do so.
 * @returns the status, and an id for what has no other; undefined where nothing can be answered
 */
export function answerInvalidRequest(error: ParserError, socket: Duplex): { id: string; status: number } | undefined {
  // The parser goes on to refuse what comes after that.
  if (refused.has(socket)) return undefined;
  // One of TLS is not answered in HTTP.
  const isHttp = error.code?.startsWith('HPE_') || error.code?.startsWith('ERR_HTTP_');
  if (!isHttp || !socket.writable || isAnswering(socket)) {
    socket.destroy();
    return undefined;
  }
  refused.add(socket);
  const [status, code, message]: readonly [status: string, code: ReplyCode, message: string] = isOfProxy(error)
    ? ['403 Forbidden', 'FORBIDDEN', 'The request is not valid HTTP.']
    : error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE', 'The headers are too large.']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'TIMEOUT', 'The request took too long to arrive.']
        : ['400 Bad Request', 'BAD_REQUEST', 'The request is not valid HTTP.'];
  const body = JSON.stringify(errorBody(message, code));
  const id = randomUUID();
  const headers = Object.entries({ ...headersOf(body), [REQUEST_ID]: id });
  socket.end(`HTTP/1.1 ${status}\r\n${headers.map((header) => `${header.join(': ')}\r\n`).join('')}\r\n${body}`);
  setTimeout(() => socket.destroy(), LINGER_MS);
  return { id, status: Number.parseInt(status, 10) };
}

/**
 * Refuses a request that a proxy in front may have read otherwise: with two Hosts (RFC 9112, section 3.2), with a path
 * that is not UTF-8, or with a body that is encoded for its way (section 6.1), without reading that.
 * @returns whether it was refused
 */
export function refuseAmbiguous({ rawHeaders, url = '' }: IncomingMessage, outgoing: ServerResponse): boolean {
  const coding = headerValue(rawHeaders, 'transfer-encoding');
  const isOneAddress = !headerValue(rawHeaders, 'host')?.includes(',') && isDecodable(url.split('?', 1)[0]!);
  if (isOneAddress && (coding === undefined || coding.toLowerCase() === 'chunked')) return false;
  const message = isOneAddress ? 'Only "Transfer-Encoding: chunked" is supported.' : 'The Host or target is invalid.';
  const body = JSON.stringify(errorBody(message, 'BAD_REQUEST'));
  outgoing.writeHead(400, headersOf(body));
  outgoing.end(body);
  return true;
}

/** Refuses an Expect other than 100-continue (RFC 9110, section 10.1.1), without reading the body. */
export function refuseExpectation(_incoming: IncomingMessage, outgoing: ServerResponse): void {
  const body = JSON.stringify(errorBody('Only "Expect: 100-continue" is supported.', 'EXPECTATION_FAILED'));
  outgoing.writeHead(417, headersOf(body));
  outgoing.end(body);
}

/** The headers of a refusal after which the connection is closed. */
function headersOf(body: string): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    ...REPLY_HEADERS,
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  };
}
