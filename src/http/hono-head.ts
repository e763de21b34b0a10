import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
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
    return ((this.c.env ?? {}) as Partial<HttpBindings>).incoming as IncomingMessage | undefined;
  }
}

/** The id of a request, if it has one. */
export function requestIdIn(c: Context): string | undefined {
  return new HonoHead(c).notes?.id;
}
