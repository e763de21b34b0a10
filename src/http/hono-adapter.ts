import type { IncomingMessage } from 'node:http';
import type { Context, Handler, Hono, MiddlewareHandler } from 'hono';
import { findTargetHandler } from 'hono/utils/handler';
import { getPath, getPathNoStrict } from 'hono/utils/url';
import { admissionOf, type BearerEnv } from './bearer-auth.ts';
import type { GraphQLPipeline } from './graphql-pipeline.ts';
import { bodyCutOff, collectBody, type GraphQLRequest } from './graphql-request.ts';
import { HonoHead, memoized, type RequestHead } from './received.ts';
import { RequestRefused, respond } from './replies.ts';

/** Hands requests that `bearerAuth` has accepted to the pipeline. */
function answerByHono(pipeline: GraphQLPipeline): Handler {
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

/** The pipeline that each handler of a GraphQL route belongs to. */
const pipelines = new WeakMap<object, GraphQLPipeline>();
/** How many of them a route has. */
const HANDLERS = 3;

/** The handlers of a GraphQL route. The pipeline does what they do. */
export function handlersOf(
  pipeline: GraphQLPipeline,
  cors: MiddlewareHandler,
  auth: MiddlewareHandler<BearerEnv>,
): [MiddlewareHandler, MiddlewareHandler<BearerEnv>, Handler] {
  const answer = answerByHono(pipeline);
  for (const handler of [cors, auth, answer]) pipelines.set(handler, pipeline);
  return [cors, auth, answer];
}

/** URLs without anything in their path that a router would decode, or in their query that would end it. */
const PLAIN_URL = /^\/[\w/-]*(?:\?[!"$-~]*)?$/;

/** Finds the pipeline at a path, if there is one. */
type FindPipeline = (path: string) => { pipeline: GraphQLPipeline | undefined };

/** The routes of an app, or of one that it is mounted in, that have nothing but the handlers of one pipeline. */
export class GraphQLRoutes {
  readonly #isPlain: boolean;
  readonly #at: Readonly<Record<'GET' | 'POST', FindPipeline>>;

  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  constructor(app: Hono<any>) {
    // An app may route by more than the path, such as by the host.
    this.#isPlain = app.getPath === getPath || app.getPath === getPathNoStrict;
    const finder = (method: string) => memoized((path) => ({ pipeline: pipelineAt(app, method, path) }));
    this.#at = { GET: finder('GET'), POST: finder('POST') };
  }

  /** The pipeline of the route of a GET or POST request; undefined for all other requests. */
  find({ method, url = '' }: IncomingMessage): GraphQLPipeline | undefined {
    if (!this.#isPlain || (method !== 'POST' && method !== 'GET') || !PLAIN_URL.test(url)) return undefined;
    const end = url.indexOf('?');
    return this.#at[method](end === -1 ? url : url.slice(0, end)).pipeline;
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
function pipelineAt(app: Hono<any>, method: string, path: string): GraphQLPipeline | undefined {
  let matched;
  try {
    [matched] = app.router.match(method, path);
  } catch {
    return undefined; // Hono's listener reports it.
  }
  const handlers = matched.map(([[handler]]) => pipelines.get(findTargetHandler(handler)));
  const [first] = handlers;
  return handlers.length === HANDLERS && handlers.every((pipeline) => pipeline === first) ? first : undefined;
}
