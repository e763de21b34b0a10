import type { IncomingMessage } from 'node:http';
import type { Context } from 'hono';
import { peerOf, type Received } from './client-address.ts';
import { notesOf, type RequestNotes } from './request-notes.ts';

/** The head of a request as Hono has it. */
export class HonoHead implements Received {
  protected readonly c: Context;

  constructor(c: Context) {
    this.c = c;
  }

  header(name: string): string | undefined {
    return this.c.req.header(name);
  }

  get notes(): RequestNotes | undefined {
    return notesOf(this.#incoming);
  }

  peer(): string | undefined {
    return peerOf(this.#incoming?.socket);
  }

  get #incoming(): IncomingMessage | undefined {
    const { incoming } = (this.c.env ?? {}) as { incoming?: IncomingMessage };
    return incoming;
  }
}

/** The id of a request, if it has one. */
export function requestIdIn(c: Context): string | undefined {
  return new HonoHead(c).notes?.id;
}
