import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { IdentifiedResponse } from './identified-response.ts';

/** What answers may wait for their readers. */
export interface UnreadLimits {
  /** How long a client may read nothing of an answer, in milliseconds. Default: 30,000. */
  unreadMs?: number;
  /** The bytes of answers that one connection may leave unread, unless it is a single answer. Default: 16 MiB. */
  unreadBytesPerConnection?: number;
  /** The bytes of answers that all connections may leave unread. Default: 128 MiB. */
  unreadBytes?: number;
}

/** Bounds the answers that wait in memory for clients which do not read them. */
export class UnreadAnswers {
  readonly #limits: Required<UnreadLimits>;
  /** The bytes of each connection, in the order in which they began to wait. */
  readonly #waiting = new Map<Socket, number>();
  /** Those whose end is noticed. */
  readonly #known = new WeakSet<Socket>();
  #bytes = 0;

  constructor({
    unreadMs = 30_000,
    unreadBytesPerConnection = 16 * 1024 * 1024,
    unreadBytes = 128 * 1024 * 1024,
  }: UnreadLimits) {
    this.#limits = { unreadMs, unreadBytesPerConnection, unreadBytes };
  }

  /** Closes a connection when its client has read nothing for some time. Node looks at what the system has taken. */
  expectReading(socket: Socket): void {
    socket.setTimeout(this.#limits.unreadMs);
  }

  /** Counts a whole answer that the system has not taken yet. Connections that are over a limit are closed. */
  add(response: ServerResponse): void {
    const { socket } = response.req;
    if (socket.destroyed) return;
    const bytes = response.writableLength;
    const before = this.#waiting.get(socket) ?? 0;
    this.#set(socket, before + bytes);
    response.once('finish', () => this.#set(socket, Math.max((this.#waiting.get(socket) ?? 0) - bytes, 0)));
    if (!this.#known.has(socket)) socket.once('close', () => this.#set(socket, 0));
    this.#known.add(socket);
    this.expectReading(socket);
    const { unreadBytesPerConnection, unreadBytes } = this.#limits;
    if (before > 0 && before + bytes > unreadBytesPerConnection) this.#close(socket);
    for (const [longest] of this.#waiting) {
      if (this.#bytes <= unreadBytes || this.#waiting.size === 1) break;
      this.#close(longest);
    }
  }

  #set(socket: Socket, bytes: number): void {
    this.#bytes += bytes - (this.#waiting.get(socket) ?? 0);
    if (bytes > 0) this.#waiting.set(socket, bytes);
    else this.#waiting.delete(socket);
  }

  #close(socket: Socket): void {
    this.#set(socket, 0);
    socket.destroy();
  }
}

/** Where a connection keeps the response that it is to send next, or is sending. A WeakMap of all would cost more. */
const RESPONSE = Symbol('response');
/** Where it keeps the response to the latest request, which waits for those before it. */
const LATEST = Symbol('latest response');
type Answering = Duplex & { [RESPONSE]?: ServerResponse; [LATEST]?: ServerResponse };

/** Whether a part of an answer is out, so that nothing else may follow it but the rest. */
export function isAnswering(socket: Duplex): boolean {
  const response = (socket as Answering)[RESPONSE];
  return response !== undefined && response.headersSent && !response.writableFinished;
}

/** The response to the latest request of a connection; it may be sent already. */
export function latestResponse(socket: Duplex): ServerResponse | undefined {
  return (socket as Answering)[LATEST];
}

/** The encoding that `end` was given, if any. */
function encodingOf(argument: unknown): BufferEncoding {
  return typeof argument === 'string' ? (argument as BufferEncoding) : 'utf8';
}

/** The class of a server's responses, which reports what waits for its reader. */
export function responseClass(unread: UnreadAnswers): typeof ServerResponse<IncomingMessage> {
  return class extends IdentifiedResponse {
    #isWaiting = false;

    constructor(...args: ConstructorParameters<typeof ServerResponse<IncomingMessage>>) {
      super(...args);
      (this.req.socket as Answering)[LATEST] = this;
    }

    override assignSocket(socket: Socket): void {
      (socket as Answering)[RESPONSE] = this;
      super.assignSocket(socket);
    }

    override write(...args: unknown[]): boolean {
      const isTaken = super.write(...(args as Parameters<ServerResponse['write']>));
      if (!isTaken && !this.#isWaiting) {
        const { socket } = this.req;
        this.#isWaiting = true;
        unread.expectReading(socket);
        this.once('drain', () => {
          this.#isWaiting = false;
          socket.setTimeout(0);
        });
      }
      return isTaken;
    }

    override end(...args: unknown[]): this {
      const [body] = args;
      // What waits is counted by Node, which counts the characters of a text.
      if (typeof body === 'string' && args[1] !== 'latin1') args[0] = Buffer.from(body, encodingOf(args[1]));
      super.end(...(args as []));
      if (this.writableLength > 0) unread.add(this);
      return this;
    }
  };
}
