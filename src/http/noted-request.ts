import type { ClientAddresses, Received } from './client-address.ts';
import { requestIdOf } from './request-id.ts';
import type { NamedOperation, RequestDetails, RequestNotes } from './request-notes.ts';

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
