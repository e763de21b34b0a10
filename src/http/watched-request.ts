import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, type OutgoingHttpHeaders, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { holdsSecret, redactSecrets } from '../keys/secret/index.ts';
import {
  type ClientAddress,
  type ClientAddresses,
  headerValue,
  isLoopback,
  keepNotes,
  type NamedOperation,
  networkOf,
  NodeHead,
  notesOf,
  type Received,
  type RequestDetails,
  type RequestNotes,
} from './received.ts';

/** The parts of the service that requests go to, as logs, metrics and traces name them. */
export const ENDPOINTS = [
  'graphql',
  'introspect',
  'consent',
  'console',
  'sign-in',
  'health',
  'home',
  'forward-auth',
  'guard',
  'other',
] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

const BY_PATH: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  ['/graphql', 'graphql'],
  ['/introspect', 'introspect'],
  ['/healthz', 'health'],
  ['/readyz', 'health'],
  ['/', 'home'],
  ['/device', 'consent'],
  ['/console', 'console'],
  ['/.well-known/oauth-authorization-server', 'consent'],
]);
const BY_START: readonly (readonly [start: string, endpoint: Endpoint])[] = [
  ['/auth/', 'forward-auth'],
  ['/oauth/', 'consent'],
  ['/console/', 'console'],
  ['/.svc-api/', 'sign-in'],
];

/** The endpoint of a URL, from a fixed set, so that clients cannot invent names. */
export function endpointOf(url = ''): Endpoint {
  const end = url.indexOf('?');
  const path = end === -1 ? url : url.slice(0, end);
  return BY_PATH.get(path) ?? BY_START.find(([start]) => path.startsWith(start))?.[1] ?? 'other';
}

/** The header with the id of a request, as most proxies and services name it. */
export const REQUEST_ID = 'X-Request-Id';
const ID_HEADER = REQUEST_ID.toLowerCase();

/** Ids from proxies: UUIDs, hexadecimal numbers, `Root=1-67891233-abcdef012345678912345678`. */
const ID = /^[\w.:;@+/=~-]{1,128}$/;

/** The id of a request: from a trusted proxy, or a new one. */
function requestIdOf(request: Received, clients: ClientAddresses): string {
  const given = request.header(ID_HEADER);
  const isTaken = given !== undefined && ID.test(given) && !holdsSecret(given) && clients.trusts(request.peer());
  return isTaken ? given : randomUUID();
}

/** Called for the requests of a server. */
export interface RequestWatcher {
  /** Called when a request has arrived. */
  began?(request: WatchedRequest): void;
  /** Called after it was answered, or its connection has ended. */
  ended(request: WatchedRequest): void;
  /** Called for input that could not be read. */
  unread(request: UnreadRequest): void;
}

/** Input that was not a complete HTTP request, and its answer. */
export interface UnreadRequest {
  readonly id: string;
  readonly status: number;
  /** Undefined if unknown. */
  readonly address: string | undefined;
}

/** A span of time, in milliseconds of `performance.now()`. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

const MAX_NAME = 100;

/** Facts about a request, for its answer and for watchers. */
export class WatchedRequest implements RequestNotes {
  readonly head: Received;
  readonly endpoint: Endpoint;
  keyId: string | undefined = undefined;
  client: ClientAddress | undefined = undefined;
  trace: readonly string[] | undefined = undefined;
  upstream: string | undefined = undefined;
  details: RequestDetails | undefined = undefined;
  errors = 0;
  /** When its head had arrived, in milliseconds of `performance.now()`. */
  readonly from = performance.now();
  /** When it ended. */
  to = Number.NaN;
  /** The status of its answer; undefined if the connection ended before. */
  status: number | undefined = undefined;
  /** True if the connection ended before the whole answer was sent. */
  isCutOff = false;
  /** When it waited for the store to find the key. */
  storeTime: Span | undefined = undefined;
  /** Data for traces, if it is traced. */
  traced: object | undefined = undefined;

  readonly #clients: ClientAddresses;
  #id: string | undefined = undefined;
  #operation: NamedOperation | undefined = undefined;
  #token: string | undefined = undefined;

  constructor(head: Received, clients: ClientAddresses, endpoint: Endpoint) {
    this.head = head;
    this.#clients = clients;
    this.endpoint = endpoint;
  }

  get id(): string {
    return (this.#id ??= requestIdOf(this.head, this.#clients));
  }

  get method(): string | undefined {
    return this.head.method;
  }

  /** The GraphQL operation. Its name is the client's text, up to 100 characters, without secrets. */
  get operation(): NamedOperation | undefined {
    if (!this.#operation) return undefined;
    const { isMutation, name } = this.#operation;
    return { isMutation, name: name && nameWithout(this.#token, name) };
  }

  /** The client's address, if it is known. */
  get address(): string | undefined {
    return (this.client ?? this.#clients.of(this.head)).address;
  }

  get durationMs(): number {
    return this.to - this.from;
  }

  noteOperation(operation: NamedOperation, token: string | undefined): void {
    this.#operation = operation;
    this.#token = token;
  }

  noteStoreTime(from: number, to: number): void {
    this.storeTime = { from, to };
  }

  /** Records the end of its response, sent or not. */
  endWith({ headersSent, statusCode, writableFinished }: ServerResponse): void {
    // On a switch of protocols, the head bypasses Node's response.
    const isSwitched = statusCode === 101;
    this.to = performance.now();
    this.status = headersSent || isSwitched ? statusCode : undefined;
    this.isCutOff = !writableFinished && !isSwitched;
  }
}

/**
 * A name without its request's secret, or any other. Cut off only afterwards: part of a secret would not be recognized.
 */
function nameWithout(token: string | undefined, name: string): string {
  const shown = token === undefined ? name : name.replaceAll(token, '[redacted]');
  return redactSecrets(shown).slice(0, MAX_NAME);
}

/** The parts of a server that notes on its requests need. */
export interface RequestPlaces {
  /** Determines the addresses of clients, by the proxies trusted now. */
  readonly clients: ClientAddresses;
  endpointOf(incoming: IncomingMessage): Endpoint;
}

/** Starts notes on a new request. */
type NoteRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** Gives each request an id, and calls the watchers. */
export function notingFor(places: RequestPlaces, watchers: readonly RequestWatcher[]): NoteRequest {
  return (incoming, outgoing) => {
    const request = new WatchedRequest(new NodeHead(incoming), places.clients, places.endpointOf(incoming));
    keepNotes(incoming, request);
    if (watchers.length === 0) return;
    for (const watcher of watchers) watcher.began?.(request);
    // Emitted once; `once` would cost more.
    outgoing.on('close', () => {
      request.endWith(outgoing);
      for (const watcher of watchers) watcher.ended(request);
    });
  };
}

/** The limit assumed if it cannot be read. */
const USUAL_LIMIT = 1024;
/**
 * Descriptors reserved for the store, its copies, the log and Node itself: this many, or most of them if there are few.
 */
const RESERVED = 128;
const LEAST_SHARE = 1 / 4;
/** The memory of connections limits them if descriptors do not. */
const MAX_CONNECTIONS = 20_000;

/**
 * How many connections this process can have at a time, by its limit of open descriptors.
 * @param wanted the desired number
 * @param descriptorsEach how many descriptors each one needs, including what is opened for it
 */
export function affordableConnections(wanted = MAX_CONNECTIONS, descriptorsEach = 1): number {
  const limit = descriptorLimit();
  const descriptors = Math.max(limit - RESERVED, limit * LEAST_SHARE);
  return Math.min(wanted, Math.floor(descriptors / descriptorsEach));
}

/** The soft limit of open descriptors (RLIMIT_NOFILE), which Node has raised to the hard one. */
function descriptorLimit(): number {
  try {
    const [, limit] = /^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === 'unlimited' ? Infinity : Number(limit ?? USUAL_LIMIT);
  } catch {
    return USUAL_LIMIT; // There is no such file but on Linux.
  }
}

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

/** The limits of a server's connections. */
export interface ConnectionLimits {
  /** In total; at most 128 fewer than the process's limit of descriptors. Default: that, and at most 20,000. */
  connections?: number;
  /**
   * From one IPv4 address, or one /64 of IPv6. Default: half of the total, without a limit for loopback, where a proxy
   * holds the connections of all its clients.
   */
  connectionsPerAddress?: number;
}

type BoundConnections = ConnectionLimits & { connections: number };

/**
 * The connection limit of an address, or of its network from `networkOf`, which is empty on a Unix socket, where there
 * is a proxy, too.
 */
export function connectionsFrom(network: string, { connections, connectionsPerAddress }: BoundConnections): number {
  const isProxy = network === '' || isLoopback(network);
  return connectionsPerAddress ?? (isProxy ? connections : Math.ceil(connections / 2));
}

/** Limits the connections of a server, so that no client takes all descriptors. */
export class Connections {
  readonly #open = new Set<Socket>();
  /** With TLS, the secure sockets after the handshake, by client. */
  readonly #secured: Map<string, Socket> | undefined;
  readonly #limits: BoundConnections;
  readonly #ofNetwork = new Map<string, number>();
  readonly #refused: (reason: string, network: string) => void;

  /** @param refused called with the reason and the network of a closed connection */
  constructor(server: Server, limits: ConnectionLimits, refused: (reason: string, network: string) => void) {
    const connections = affordableConnections(limits.connections);
    this.#limits = { ...limits, connections };
    this.#refused = refused;
    // Node itself closes connections above the limit.
    server.maxConnections = connections;
    server.on('drop', (dropped) => refused('too many connections', networkOf(dropped?.remoteAddress)));
    server.on('connection', (socket) => this.#admit(socket));
    // Tested by a member, since its class would load all of TLS.
    if (!('setSecureContext' in server)) return;
    const secured = (this.#secured = new Map<string, Socket>());
    server.on('secureConnection', (socket) => {
      const client = clientOf(socket);
      secured.set(client, socket);
      socket.once('close', () => secured.delete(client));
    });
  }

  /** Closes connections on which no request has begun to arrive: Node does not consider them idle. */
  closeSilent(): void {
    for (const socket of this.#open) {
      const carrier = this.#secured ? this.#secured.get(clientOf(socket)) : socket;
      if (!carrier || carrier.bytesRead === 0) socket.destroy();
    }
  }

  closeAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #admit(socket: Socket): void {
    const network = networkOf(socket.remoteAddress);
    const count = (this.#ofNetwork.get(network) ?? 0) + 1;
    this.#ofNetwork.set(network, count);
    this.#open.add(socket);
    socket.once('close', () => this.#leave(socket, network));
    if (count <= connectionsFrom(network, this.#limits)) return;
    this.#refused('too many connections from this address', network);
    socket.destroy();
  }

  #leave(socket: Socket, network: string): void {
    this.#open.delete(socket);
    const count = this.#ofNetwork.get(network)! - 1;
    if (count > 0) this.#ofNetwork.set(network, count);
    else this.#ofNetwork.delete(network);
  }
}

function clientOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
