import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { holdsSecret, redactSecrets } from '../keys/secret/index.ts';
import type { ClientAddress, ClientAddresses } from './client-address.ts';
import type { Endpoint } from './endpoints.ts';
import { NodeHead, type Received } from './received.ts';
import { ID_HEADER, keepNotes, type NamedOperation, type RequestDetails, type RequestNotes } from './request-notes.ts';

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
