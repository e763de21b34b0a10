import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Framing } from './framing.ts';
import type { RequestTarget } from './request-target.ts';

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
