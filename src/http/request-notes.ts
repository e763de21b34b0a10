import type { IncomingMessage } from 'node:http';
import type { ClientAddress } from './client-address.ts';

/** The header with the id of a request, as most proxies and services name it. */
export const REQUEST_ID = 'X-Request-Id';
export const ID_HEADER = REQUEST_ID.toLowerCase();

/** The name and kind of an operation. */
export interface NamedOperation {
  readonly isMutation: boolean;
  /** The name in its document; undefined without one. */
  readonly name: string | undefined;
}

/** The log's record of a request at level debug: which part decided what, and how long each stage took. */
export class RequestDetails {
  /** The public id of the key, once that is known. */
  prefix: string | undefined = undefined;
  /** The source of the key: the cache of accepted secrets, or the store. */
  keyFrom: 'cache' | 'store' | undefined = undefined;
  /** The route that decides about it. */
  route: string | undefined = undefined;
  readonly permissions = new Set<string>();
  /** The error code of the answer, if it has one. */
  code: string | undefined = undefined;
  /** Why it is refused, and the permissions that it lacks. */
  reason: object | undefined = undefined;
  /** In milliseconds, in order. */
  readonly stages: Record<string, number> = {};
  #last = performance.now();

  /** Records the end of a stage, and starts the next one. */
  ended(stage: string): void {
    const now = performance.now();
    this.stages[stage] = Math.round(((this.stages[stage] ?? 0) + now - this.#last) * 1000) / 1000;
    this.#last = now;
  }
}

/** Notes on a request while it is answered. */
export interface RequestNotes {
  /** Its id, sent as `X-Request-Id` with the answer. */
  readonly id: string;
  /** The id of the key that makes it, once that is known. */
  keyId: string | undefined;
  /** The client's address, if it is known in another way than by the usual headers. */
  client: ClientAddress | undefined;
  /** Trace headers for an upstream, names and values alternating; undefined for none. */
  readonly trace: readonly string[] | undefined;
  /** The name of the upstream that it is passed on to. */
  upstream: string | undefined;
  /** Further notes for a log at level debug. */
  readonly details: RequestDetails | undefined;
  /** The number of errors in a GraphQL answer. */
  errors: number;
  /** Records the GraphQL operation. @param token the secret that was sent, which a name must not contain */
  noteOperation(operation: NamedOperation, token: string | undefined): void;
  /** Records when it waited for the store to find the key, in milliseconds of `performance.now()`. */
  noteStoreTime(from: number, to: number): void;
}

const NOTES = Symbol('notes');
type Noted = IncomingMessage & { [NOTES]?: RequestNotes };

/** Attaches notes to a request of Node. A WeakMap of all would cost more. */
export function keepNotes(incoming: IncomingMessage, notes: RequestNotes): void {
  (incoming as Noted)[NOTES] = notes;
}

/** The notes of a request; undefined if it came through another server than ours. */
export function notesOf(incoming: IncomingMessage | undefined): RequestNotes | undefined {
  const noted: Noted | undefined = incoming;
  return noted?.[NOTES];
}
