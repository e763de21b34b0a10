import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type ClientAddresses,
  keepNotes,
  type NamedOperation,
  NodeHead,
  type Received,
  type RequestDetails,
  type RequestNotes,
} from './received.ts';
import { holdsSecret, redactSecrets } from '../keys/secret/secret.ts';

/** The parts of the service that requests go to, as logs, metrics and traces name them. */
export const ENDPOINTS = [
  'graphql',
  'introspect',
  'consent',
  'console',
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
];

/** The endpoint of a URL, whatever it answers: one of few, so that clients cannot make up any. */
export function endpointOf(url = ''): Endpoint {
  const end = url.indexOf('?');
  const path = end === -1 ? url : url.slice(0, end);
  return BY_PATH.get(path) ?? BY_START.find(([start]) => path.startsWith(start))?.[1] ?? 'other';
}

/** The header that has the id of a request, as most proxies and services name it. */
export const REQUEST_ID = 'X-Request-Id';

/** Ids as proxies make them: UUIDs, hexadecimal numbers, `Root=1-67891233-abcdef012345678912345678`. */
const ID = /^[\w.:;@+/=~-]{1,128}$/;

/** The id of a request: the one that a trusted proxy has given it, or a new one. */
function requestIdOf(request: Received, clients: ClientAddresses): string {
  const given = request.header('x-request-id');
  const isTaken = given !== undefined && ID.test(given) && !holdsSecret(given) && clients.trusts(request.peer());
  return isTaken ? given : randomUUID();
}

/** A request that nobody watches: of all notes, it only has its id. */
export class NotedRequest implements RequestNotes {
  readonly head: Received;
  keyId: string | undefined = undefined;
  trace: readonly string[] | undefined = undefined;
  details: RequestDetails | undefined = undefined;
  errors = 0;
  protected readonly clients: ClientAddresses;
  #id: string | undefined = undefined;

  constructor(head: Received, clients: ClientAddresses) {
    this.head = head;
    this.clients = clients;
  }

  get id(): string {
    return (this.#id ??= requestIdOf(this.head, this.clients));
  }

  noteOperation(_operation: NamedOperation, _token: string | undefined): void {}

  noteStoreTime(_from: number, _to: number): void {}
}

/** Is told of the requests of a server. */
export interface RequestWatcher {
  /** A request has arrived. */
  began?(request: WatchedRequest): void;
  /** It has been answered, or its connection has ended. */
  ended(request: WatchedRequest): void;
  /** Something has arrived that could not be read. */
  unread(request: UnreadRequest): void;
}

/** What was no HTTP, or not all of it, and how it was answered. */
export interface UnreadRequest {
  readonly id: string;
  readonly status: number;
  /** Undefined if it is not known. */
  readonly address: string | undefined;
}

/** A part of time, in milliseconds of `performance.now()`. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

const MAX_NAME = 100;

/** What is known of a request, for those who watch. */
export class WatchedRequest extends NotedRequest implements RequestNotes {
  readonly method: string | undefined;
  readonly endpoint: Endpoint;
  /** When its head had arrived, in milliseconds of `performance.now()`. */
  readonly from = performance.now();
  /** When it ended. */
  to = Number.NaN;
  /** The status of its answer; undefined where the connection ended before there was one. */
  status: number | undefined = undefined;
  /** Whether the connection ended before all of the answer was sent. */
  isCutOff = false;
  /** What GraphQL was asked. The name is what the client wrote, up to 100 characters of it, without secrets. */
  operation: NamedOperation | undefined = undefined;
  /** When the store was waited for to know the key. */
  storeTime: Span | undefined = undefined;
  /** What traces keep of it, where it is one of those that are traced. */
  traced: object | undefined = undefined;

  constructor(head: Received, clients: ClientAddresses, what: { method: string | undefined; endpoint: Endpoint }) {
    super(head, clients);
    this.method = what.method;
    this.endpoint = what.endpoint;
  }

  /** The client's address, if it is known. */
  get address(): string | undefined {
    return this.clients.of(this.head).address;
  }

  get durationMs(): number {
    return this.to - this.from;
  }

  override noteOperation({ isMutation, name }: NamedOperation, token: string | undefined): void {
    this.operation = { isMutation, name: name && nameWithout(token, name) };
  }

  override noteStoreTime(from: number, to: number): void {
    this.storeTime = { from, to };
  }

  /** It has ended, by this status. */
  end(status: number | undefined, isCutOff: boolean): void {
    this.to = performance.now();
    this.status = status;
    this.isCutOff = isCutOff;
  }

  /** Its response has come to an end, sent or not. */
  endWith({ headersSent, statusCode, writableFinished }: ServerResponse): void {
    // Where a protocol is switched, the head goes past Node's response.
    const isSwitched = statusCode === 101;
    this.end(headersSent || isSwitched ? statusCode : undefined, !writableFinished && !isSwitched);
  }
}

/** A name without the secret by which it was sent, or any other. It is cut only then: a part would not be known. */
function nameWithout(token: string | undefined, name: string): string {
  const shown = token === undefined ? name : name.replaceAll(token, '[redacted]');
  return redactSecrets(shown).slice(0, MAX_NAME);
}

/** What is to be known of a server for notes on its requests. */
export interface RequestPlaces {
  /** Finds out where requests come from: by the proxies that are trusted now. */
  readonly clients: ClientAddresses;
  endpointOf(incoming: IncomingMessage): Endpoint;
}

/** Begins to take notes on a request that has arrived. */
type NoteRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** Lets each request have an id, and tells those who watch of it. Where nobody does, this costs nothing more. */
export function notingFor(places: RequestPlaces, watchers: readonly RequestWatcher[]): NoteRequest {
  if (watchers.length === 0)
    return (incoming) => keepNotes(incoming, new NotedRequest(new NodeHead(incoming), places.clients));
  return (incoming, outgoing) => {
    const what = { method: incoming.method, endpoint: places.endpointOf(incoming) };
    const request = new WatchedRequest(new NodeHead(incoming), places.clients, what);
    keepNotes(incoming, request);
    for (const watcher of watchers) watcher.began?.(request);
    // It is emitted once; `once` would cost more.
    outgoing.on('close', () => {
      request.endWith(outgoing);
      for (const watcher of watchers) watcher.ended(request);
    });
  };
}
