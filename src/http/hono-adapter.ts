import type { Context, Handler } from 'hono';
import { admissionOf } from './bearer-auth.ts';
import type { GraphQLPipeline } from './graphql-pipeline.ts';
import { bodyCutOff, collectBody, type GraphQLRequest } from './graphql-request.ts';
import { HonoHead } from './hono-head.ts';
import { respond } from './replies.ts';
import type { RequestHead } from './request-head.ts';
import { RequestRefused } from './request-refused.ts';

/** Hands requests that `bearerAuth` has let in to the pipeline. */
export function answerByHono(pipeline: GraphQLPipeline): Handler {
  return async (c) => respond(c, await pipeline.answer(new HonoRequest(c), admissionOf(c)));
}

/** A request as Hono has it. */
class HonoRequest extends HonoHead implements GraphQLRequest {
  readonly head: RequestHead;

  constructor(c: Context) {
    super(c);
    this.head = {
      accept: c.req.header('accept'),
      contentType: c.req.header('content-type'),
      contentLength: c.req.header('content-length'),
      contentEncoding: c.req.header('content-encoding'),
    };
  }

  get method(): string {
    return this.c.req.method;
  }

  get search(): string {
    return new URL(this.c.req.raw.url).search;
  }

  async body(): Promise<Uint8Array> {
    const { raw } = this.c.req;
    try {
      // One that is read at once takes no stream.
      if (this.head.contentLength !== undefined) return new Uint8Array(await raw.arrayBuffer());
      return await collectBody((raw.body ?? []) as AsyncIterable<Uint8Array> | []);
    } catch (error) {
      throw error instanceof RequestRefused ? error : bodyCutOff();
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
