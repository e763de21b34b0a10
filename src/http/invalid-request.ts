import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { headerValue, isDecodable } from './received.ts';
import { errorBody, REPLY_HEADERS, type ReplyCode, statusOf } from './replies.ts';
import { REQUEST_ID } from './request-notes.ts';
import { isAnswering } from './responses.ts';
import { isForProxies } from './shortcut.ts';

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
export function answerInvalidRequest(error: ParserError, socket: Duplex): { id: string; status: number } | undefined {
  // The parser also reports the input after the refused one.
  if (refusedConnections.has(socket)) return undefined;
  // An error of TLS cannot be answered in HTTP.
  const isHttp = error.code?.startsWith('HPE_') || error.code?.startsWith('ERR_HTTP_');
  if (!isHttp || !socket.writable) {
    socket.destroy();
    return undefined;
  }
  refusedConnections.add(socket);
  setTimeout(() => socket.destroy(), REFUSED_LINGER_MS);
  if (isAnswering(socket)) {
    // Sends what has been written of that answer.
    socket.end();
    return undefined;
  }
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
  return { id, status };
}

/** Dot segments: a proxy may resolve them differently than we do. */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/**
 * Refuses a request that a proxy in front may have interpreted differently: with two Hosts (RFC 9112, section 3.2), a
 * path that is not UTF-8 or has dot segments, or a body with a transfer coding (section 6.1), which is not read.
 * @returns true if it was refused
 */
export function refuseAmbiguous({ rawHeaders, url = '' }: IncomingMessage, outgoing: ServerResponse): boolean {
  const coding = headerValue(rawHeaders, 'transfer-encoding');
  const path = url.split('?', 1)[0]!;
  const isOneAddress = !headerValue(rawHeaders, 'host')?.includes(',') && isDecodable(path) && !DOT_SEGMENT.test(path);
  if (isOneAddress && (coding === undefined || coding.toLowerCase() === 'chunked')) return false;
  const message = isOneAddress ? 'Only "Transfer-Encoding: chunked" is supported.' : 'The Host or target is invalid.';
  answerLast(outgoing, 'BAD_REQUEST', message);
  return true;
}

/** Refuses an Expect other than 100-continue (RFC 9110, section 10.1.1), without reading the body. */
export function refuseExpectation(_incoming: IncomingMessage, outgoing: ServerResponse): void {
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
