import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Framing, hasBody, type RequestTarget } from './passed-headers.ts';
import { errorReply, headersOf, type Reply, send } from '../../http/index.ts';

/** A connection that is no longer one of HTTP, and what has arrived on it. */
export interface BareConnection {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** A request that has arrived, and the connection for its answer. */
export interface ArrivedRequest {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** Makes its answer the last one on this connection: what the client has sent behind the request is not looked at. */
  closeAfter(): void;
}

/** A request that has arrived, of which it is clear where it is going and where it ends. */
export interface ReceivedRequest extends ArrivedRequest {
  readonly target: RequestTarget;
  readonly framing: Framing;
  /** Whether the client waits for `100 Continue` before it sends its body. */
  readonly expectsContinue: boolean;
  /** The protocol that the client asks to switch to, and its connection. */
  readonly switching: { readonly protocol: string; readonly connection: BareConnection } | undefined;
}

/** A body that is short enough to be read and dropped, so that the connection can be kept, in bytes. */
const SHORT_BODY = 64 * 1024;
/** How long the client of a refused request gets to read the answer: closed at once, it might lose that. */
const LINGER_MS = 1000;

/** The reply to a request of which it is not clear where it is going, or where it ends. */
export function badRequest(message: string): Reply {
  return errorReply('BAD_REQUEST', message);
}

/** The reply when the upstream cannot be reached, or does not speak HTTP. */
export function badGateway(): Reply {
  return errorReply('BAD_GATEWAY', 'The service behind this one cannot be reached, or did not answer properly.');
}

/** The reply when the upstream takes too long. */
export function gatewayTimeout(): Reply {
  const text = 'The service behind this one took too long to answer. --timeout of the guard says how long it may take.';
  return errorReply('GATEWAY_TIMEOUT', text);
}

/** The reply when the client takes too long to send its body. */
export function requestTimeout(): Reply {
  return errorReply('TIMEOUT', 'The request took too long to arrive.');
}

/** The reply to CONNECT and TRACE, which are for proxies that clients choose. */
export function methodNotAllowed(method: string): Reply {
  return errorReply('METHOD_NOT_ALLOWED', `${method} is not passed on.`, {
    Allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
  });
}

/** The framing of a body of which nobody knows when it ends. */
export const ENDLESS: Framing = ['Transfer-Encoding', ''];

/**
 * Answers a request whose body nobody reads. The connection is closed unless the body is short; what arrives until then
 * is dropped.
 */
export function refuse(request: ArrivedRequest, reply: Reply, framing: Framing): void {
  const { incoming, outgoing } = request;
  if (incoming.complete || !hasBody(framing)) return send(outgoing, reply);
  if (isShort(framing)) send(outgoing, reply);
  else {
    request.closeAfter();
    outgoing.writeHead(reply.status, [
      ...headersOf(reply).flat(),
      'content-length',
      `${Buffer.byteLength(reply.text)}`,
    ]);
    outgoing.write(reply.text);
    incoming.once('end', () => outgoing.end());
  }
  incoming.resume();
  const linger = setTimeout(() => incoming.socket.destroy(), LINGER_MS);
  incoming.once('close', () => clearTimeout(linger));
}

function isShort([name, length]: Framing): boolean {
  return name === 'Content-Length' && Number(length) <= SHORT_BODY;
}
