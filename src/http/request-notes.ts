import type { IncomingMessage } from 'node:http';

/** What an operation is called, and what kind it is. */
export interface NamedOperation {
  readonly isMutation: boolean;
  /** As its document has it; undefined for one without a name. */
  readonly name: string | undefined;
}

/** What is noted of a request while it is answered. */
export interface RequestNotes {
  /** Its id, which its answer has as `X-Request-Id`. */
  readonly id: string;
  /** The id of the key that makes it, once that is known. */
  keyId: string | undefined;
  /** Headers that tell an upstream of the trace that it belongs to, names and values in turn; undefined for none. */
  readonly trace: readonly string[] | undefined;
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
