import type { HttpBindings } from '@hono/node-server';
import type { Context, Handler } from 'hono';
import { admissionOf } from './bearer-auth.ts';
import { addressOf } from './client-address.ts';
import type { GraphQLPipeline } from './graphql-pipeline.ts';
import { bodyCutOff, type GraphQLRequest } from './graphql-request.ts';
import { respond } from './replies.ts';
import type { RequestHead } from './request-head.ts';

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
    const header = (name: string) => c.req.header(name);
    this.head = Object.fromEntries(
      Object.entries({
        authorization: header('authorization'),
        accept: header('accept'),
        contentType: header('content-type'),
        contentLength: header('content-length'),
        contentEncoding: header('content-encoding'),
      }).filter(([, value]) => value !== undefined),
    );
  }

  get method(): string {
    return this.#c.req.method;
  }

  get authorization(): string | undefined {
    return this.head.authorization;
  }

  address(): string | undefined {
    const { incoming } = (this.#c.env ?? {}) as Partial<HttpBindings>;
    return addressOf(incoming?.socket);
  }

  async body(): Promise<Uint8Array> {
    try {
      return new Uint8Array(await this.#c.req.raw.arrayBuffer());
    } catch {
      throw bodyCutOff();
    }
  }

  async *bodyInPieces(): AsyncGenerator<Uint8Array> {
    const { body } = this.#c.req.raw;
    if (body) yield* body as unknown as AsyncIterable<Uint8Array>;
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
