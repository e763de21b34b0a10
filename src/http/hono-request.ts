import type { HttpBindings } from '@hono/node-server';
import type { Context, Handler } from 'hono';
import { basePath } from 'hono/route';
import { HonoHead, type ServedRequest } from './received.ts';
import { type Reply, respond } from './replies.ts';
import { bodyCutOff, readFetched } from './request-body.ts';
import { stoppingOf } from './responses.ts';

/** A request as Hono has it. */
export class HonoRequest extends HonoHead implements ServedRequest {
  get target(): string {
    return this.incoming?.url?.slice(basePath(this.c).replace(/\/$/, '').length) ?? this.c.req.path + this.search;
  }

  get search(): string {
    return new URL(this.c.req.raw.url).search;
  }

  get stopping(): AbortSignal | undefined {
    const { outgoing } = (this.c.env ?? {}) as Partial<HttpBindings>;
    return outgoing && stoppingOf(outgoing);
  }

  async body(): Promise<Uint8Array> {
    const { raw } = this.c.req;
    if (this.header('content-length') === undefined) return readFetched(raw);
    try {
      // Reading it at once needs no stream.
      return new Uint8Array(await raw.arrayBuffer());
    } catch {
      throw bodyCutOff();
    }
  }

  get webRequest(): Request {
    return this.c.req.raw;
  }

  onClientGone(listener: () => void): () => void {
    const { signal } = this.c.req.raw;
    if (signal.aborted) listener();
    signal.addEventListener('abort', listener, { once: true });
    return () => signal.removeEventListener('abort', listener);
  }
}

/** A Hono handler that answers like the listener's shortcut. */
export function honoHandler(answer: (request: ServedRequest, c: Context) => Reply | Promise<Reply>): Handler {
  return async (c) => respond(c, await answer(new HonoRequest(c), c));
}
