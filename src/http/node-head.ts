import type { IncomingMessage } from 'node:http';
import { peerOf, type Received } from './client-address.ts';
import { headerValue } from './request-head.ts';
import { notesOf, type RequestNotes } from './request-notes.ts';

/** The head of a request as Node has it. */
export class NodeHead implements Received {
  protected readonly incoming: IncomingMessage;

  constructor(incoming: IncomingMessage) {
    this.incoming = incoming;
  }

  /** `incoming.headers` would leave out the second one of many headers. */
  header(name: string): string | undefined {
    return headerValue(this.incoming.rawHeaders, name);
  }

  get notes(): RequestNotes | undefined {
    return notesOf(this.incoming);
  }

  peer(): string | undefined {
    return peerOf(this.incoming.socket);
  }
}
