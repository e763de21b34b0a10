import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { peerOf, type Received } from './client-address.ts';

/** The head of a request as Hono has it. */
export class HonoHead implements Received {
  protected readonly c: Context;

  constructor(c: Context) {
    this.c = c;
  }

  header(name: string): string | undefined {
    return this.c.req.header(name);
  }

  peer(): string | undefined {
    const { incoming } = (this.c.env ?? {}) as Partial<HttpBindings>;
    return peerOf(incoming?.socket);
  }
}
