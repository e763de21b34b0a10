import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Framing, hasBody, type RequestTarget } from './passed-headers.ts';
import { errorReply, headersOf, type Reply, send } from '../../http/index.ts';

/** A connection after switching protocols, with the bytes already received. */
export interface BareConnection {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** A request that has arrived, and the connection for its answer. */
export interface ArrivedRequest {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** Makes this the last answer on the connection, and ignores anything sent after the request. */
  closeAfter(): void;
}

/** A request whose target and length are unambiguous. */
export interface ReceivedRequest extends ArrivedRequest {
  readonly target: RequestTarget;
  readonly framing: Framing;
  /** The client waits for `100 Continue` before it sends its body. */
  readonly expectsContinue: boolean;
  /** The protocol that the client asks to switch to, and its connection. */
  readonly switching: { readonly protocol: string; readonly connection: BareConnection } | undefined;
}

/** A body that is short enough to be read and dropped, so that the connection can be kept, in bytes. */
const SHORT_BODY = 64 * 1024;
/** Time for a refused client to read the answer, which it could lose if the connection closed at once. */
const LINGER_MS = 1000;

/** The reply to a request whose target or length is ambiguous. */
export function badRequest(message: string): Reply {
  return errorReply('BAD_REQUEST', message);
}

/** The reply when the upstream cannot be reached, or does not speak HTTP. */
export function badGateway(): Reply {
  return errorReply('BAD_GATEWAY', 'The service behind this one cannot be reached, or did not answer properly.');
}

/** The reply when the upstream takes too long. */
export function gatewayTimeout(): Reply {
  const text = 'The service behind this one took too long to answer. --timeout of the guard sets the limit.';
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

/** Framing of a body of unknown length. */
export const ENDLESS: Framing = ['Transfer-Encoding', ''];

/**
 * Answers a request without reading its body. The connection is closed unless the body is short; until then, received
 * bytes are dropped.
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
