import type { IncomingMessage } from 'node:http';

/** What an operation is called, and what kind it is. */
export interface NamedOperation {
  readonly isMutation: boolean;
  /** As its document has it; undefined for one without a name. */
  readonly name: string | undefined;
}

/** What the log has of a request at level debug: who decided what, and how long each stage took. */
export class RequestDetails {
  /** The public id of the key, once that is known. */
  prefix: string | undefined = undefined;
  /** Whether the key was one of those that are remembered. */
  keyFrom: 'cache' | 'store' | undefined = undefined;
  /** The route that decides about it. */
  route: string | undefined = undefined;
  readonly permissions = new Set<string>();
  /** The code of the error that it is answered, if any. */
  code: string | undefined = undefined;
  /** Why it is refused, and what it lacks. */
  reason: object | undefined = undefined;
  /** In milliseconds, in their order. */
  readonly stages: Record<string, number> = {};
  #last = performance.now();

  /** A stage has ended, and the next one begins. */
  ended(stage: string): void {
    const now = performance.now();
    this.stages[stage] = Math.round(((this.stages[stage] ?? 0) + now - this.#last) * 1000) / 1000;
    this.#last = now;
  }
}

/** What is noted of a request while it is answered. */
export interface RequestNotes {
  /** Its id, which its answer has as `X-Request-Id`. */
  readonly id: string;
  /** The id of the key that makes it, once that is known. */
  keyId: string | undefined;
  /** Headers that tell an upstream of the trace that it belongs to, names and values in turn; undefined for none. */
  readonly trace: readonly string[] | undefined;
  /** What is noted besides where the log is at level debug. */
  readonly details: RequestDetails | undefined;
  /** How many errors the answer of GraphQL has. */
  errors: number;
  /** Notes what GraphQL was asked. @param token the secret by which, which a name must not show */
  noteOperation(operation: NamedOperation, token: string | undefined): void;
  /** Notes when the store was waited for to know the key, in milliseconds of `performance.now()`. */
  noteStoreTime(from: number, to: number): void;
}

const NOTES = Symbol('notes');
type Noted = IncomingMessage & { [NOTES]?: RequestNotes };

/** Keeps the notes of a request of Node: a WeakMap of all would cost more. */
export function keepNotes(incoming: IncomingMessage, notes: RequestNotes): void {
  (incoming as Noted)[NOTES] = notes;
}

/** The notes of a request; undefined for one that came by a server of somebody else. */
export function notesOf(incoming: IncomingMessage | undefined): RequestNotes | undefined {
  const noted: Noted | undefined = incoming;
  return noted?.[NOTES];
}
