import type { ServerResponse } from 'node:http';
import { redactSecrets } from '../keys/secret/secret.ts';
import type { ClientAddresses, Received } from './client-address.ts';
import type { Endpoint } from './endpoints.ts';
import { NotedRequest } from './noted-request.ts';
import type { NamedOperation, RequestNotes } from './request-notes.ts';

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
