import { type IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { headerValue } from './received.ts';
import { ID_HEADER, REQUEST_ID, notesOf } from './request-notes.ts';

/** A response with the id of its request, whichever code writes its head, unless it sets its own. */
export class IdentifiedResponse extends ServerResponse {
  /** @param reason the reason phrase, or the headers: names and values alternating, or an object */
  override writeHead(status: number, reason?: unknown, headers?: unknown): this {
    const isNamed = typeof reason === 'string';
    const given = (isNamed ? headers : (reason ?? headers)) as string[] | OutgoingHttpHeaders | undefined;
    const all = this.#identified(given) as string[];
    return isNamed ? super.writeHead(status, reason, all) : super.writeHead(status, all);
  }

  #identified(headers: string[] | OutgoingHttpHeaders | undefined): string[] | OutgoingHttpHeaders | undefined {
    const id = notesOf(this.req)?.id;
    if (id === undefined || this.hasHeader(REQUEST_ID)) return headers;
    // With `setHeader`, Node would take twice as long to write a list.
    if (Array.isArray(headers))
      return headerValue(headers, ID_HEADER) === undefined ? [...headers, ID_HEADER, id] : headers;
    this.setHeader(ID_HEADER, id);
    return headers;
  }
}

/** Limits for answers that wait for their readers. */
export interface UnreadLimits {
  /** How long a client can go without reading from an answer, in milliseconds. Default: 30,000. */
  unreadMs?: number;
  /** The most unread bytes of answers on all connections, unless it is a single answer. Default: 128 MiB. */
  unreadBytes?: number;
}

/** Limits the answers that wait in memory for clients that do not read them. */
export class UnreadAnswers {
  readonly #limits: Required<UnreadLimits>;
  /** The bytes of each connection, in the order in which they began to wait. */
  readonly #waiting = new Map<Socket, number>();
  /** Connections with a listener for their end. */
  readonly #known = new WeakSet<Socket>();
  #bytes = 0;

  constructor({ unreadMs = 30_000, unreadBytes = 128 * 1024 * 1024 }: UnreadLimits) {
    this.#limits = { unreadMs, unreadBytes };
  }

  /** Closes a connection when its client has read nothing for some time. Node observes what the system has accepted. */
  expectReading(socket: Socket): void {
    socket.setTimeout(this.#limits.unreadMs);
  }

  /** Counts a whole answer that the system has not accepted yet, and closes connections over the limit. */
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
    const { unreadBytes } = this.#limits;
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

/** The property of a connection with the response that is next, or being sent. A WeakMap of all would cost more. */
const RESPONSE = Symbol('response');
/** The property with the response to the latest request, which can wait for earlier ones. */
const LATEST = Symbol('latest response');
type Answering = Duplex & { [RESPONSE]?: ServerResponse; [LATEST]?: ServerResponse };

/** True if part of an answer was sent, so that only the rest can follow. */
export function isAnswering(socket: Duplex): boolean {
  const response = (socket as Answering)[RESPONSE];
  return response !== undefined && response.headersSent && !response.writableFinished;
}

/** The encoding given to `end`, if any. */
function encodingOf(argument: unknown): BufferEncoding {
  return typeof argument === 'string' ? (argument as BufferEncoding) : 'utf8';
}

/** The shared part of all responses of a server. */
interface ServerOfResponses {
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
}

/** Aborted when the server of a response stops; undefined for another server than ours. */
export function stoppingOf(response: ServerResponse): AbortSignal | undefined {
  return (response as Partial<ServerOfResponses>).stopping;
}

/** The class of a server's responses, which reports answers that wait for their reader. */
export function responseClass(unread: UnreadAnswers, stopping: AbortSignal): typeof ServerResponse<IncomingMessage> {
  return class extends IdentifiedResponse {
    readonly stopping = stopping;
    #isWaiting = false;

    constructor(...args: ConstructorParameters<typeof ServerResponse<IncomingMessage>>) {
      super(...args);
      (this.req.socket as Answering)[LATEST] = this;
    }

    /**
     * While the server stops, each connection's last answer says that the connection closes (RFC 9112, section 9.6), so
     * that no further request is sent into it. Pipelined requests are answered first.
     */
    override writeHead(status: number, reason?: unknown, headers?: unknown): this {
      if (stopping.aborted && (this.req.socket as Answering)[LATEST] === this) this.shouldKeepAlive = false;
      return super.writeHead(status, reason, headers);
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
      // Node counts the characters of a waiting text, so it is converted to bytes.
      if (typeof body === 'string' && args[1] !== 'latin1') args[0] = Buffer.from(body, encodingOf(args[1]));
      super.end(...(args as []));
      if (this.writableLength > 0) unread.add(this);
      return this;
    }
  };
}
