import type { HttpBindings } from '@hono/node-server';
import type { Context, Handler } from 'hono';
import { admissionOf } from './bearer-auth.ts';
import { addressOf } from './client-address.ts';
import type { GraphQLPipeline } from './graphql-pipeline.ts';
import { bodyCutOff, collectBody, type GraphQLRequest } from './graphql-request.ts';
import { respond } from './replies.ts';
import type { RequestHead } from './request-head.ts';
import { RequestRefused } from './request-refused.ts';

/** Hands requests that `bearerAuth` has let in to the pipeline. */
export function answerByHono(pipeline: GraphQLPipeline): Handler {
  return async (c) => respond(c, await pipeline.answer(new HonoRequest(c), admissionOf(c)));
}

/** A request as Hono has it. */
class HonoRequest implements GraphQLRequest {
  readonly head: RequestHead;
  readonly #c: Context;

  constructor(c: Context) {
    this.#c = c;
    this.head = {
      authorization: c.req.header('authorization'),
      accept: c.req.header('accept'),
      contentType: c.req.header('content-type'),
      contentLength: c.req.header('content-length'),
      contentEncoding: c.req.header('content-encoding'),
    };
  }

  get method(): string {
    return this.#c.req.method;
  }

  address(): string | undefined {
    const { incoming } = (this.#c.env ?? {}) as Partial<HttpBindings>;
    return addressOf(incoming?.socket);
  }

  async body(): Promise<Uint8Array> {
    const { raw } = this.#c.req;
    try {
      // One that is read at once takes no stream.
      if (this.head.contentLength !== undefined) return new Uint8Array(await raw.arrayBuffer());
      return await collectBody((raw.body ?? []) as AsyncIterable<Uint8Array> | []);
    } catch (error) {
      throw error instanceof RequestRefused ? error : bodyCutOff();
    }
  }

  get webRequest(): Request {
    return this.#c.req.raw;
  }

  onClientGone(listener: () => void): () => void {
    const { signal } = this.#c.req.raw;
    if (signal.aborted) listener();
    signal.addEventListener('abort', listener, { once: true });
    return () => signal.removeEventListener('abort', listener);
  }
}
