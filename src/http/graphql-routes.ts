import type { IncomingMessage } from 'node:http';
import type { Handler, Hono, MiddlewareHandler } from 'hono';
import { LRUCache } from 'lru-cache';
import { findTargetHandler } from 'hono/utils/handler';
import { getPath, getPathNoStrict } from 'hono/utils/url';
import type { BearerEnv } from './bearer-auth.ts';
import type { GraphQLPipeline } from './graphql-pipeline.ts';
import { answerByHono } from './hono-adapter.ts';

/** The pipeline that both handlers of a GraphQL route belong to. */
const pipelines = new WeakMap<object, GraphQLPipeline>();

/** The handlers of a GraphQL route. */
export function handlersOf(
  pipeline: GraphQLPipeline,
  auth: MiddlewareHandler<BearerEnv>,
): [MiddlewareHandler<BearerEnv>, Handler] {
  const answer = answerByHono(pipeline);
  pipelines.set(auth, pipeline).set(answer, pipeline);
  return [auth, answer];
}

/** Paths without anything that a router would decode. */
const PLAIN_PATH = /^\/[\w/-]*$/;

/** The routes of an app, or of one that it is mounted in, that have nothing but the handlers of one pipeline. */
export class GraphQLRoutes {
  readonly #isPlain: boolean;
  readonly #known: LRUCache<string, { pipeline: GraphQLPipeline | undefined }>;

  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  constructor(app: Hono<any>) {
    // An app may route by more than the path, such as by the host.
    this.#isPlain = app.getPath === getPath || app.getPath === getPathNoStrict;
    this.#known = new LRUCache({ max: 100, memoMethod: (path) => ({ pipeline: pipelineAt(app, path) }) });
  }

  /** The pipeline of a POST request's route; undefined for all other requests. */
  find({ method, url = '' }: IncomingMessage): GraphQLPipeline | undefined {
    return this.#isPlain && method === 'POST' && PLAIN_PATH.test(url) ? this.#known.memo(url).pipeline : undefined;
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
function pipelineAt(app: Hono<any>, path: string): GraphQLPipeline | undefined {
  let matched;
  try {
    [matched] = app.router.match('POST', path);
  } catch {
    return undefined; // Hono's listener reports it.
  }
  const handlers = matched.map(([[handler]]) => pipelines.get(findTargetHandler(handler)));
  const [first] = handlers;
  return handlers.length === 2 && handlers.every((pipeline) => pipeline === first) ? first : undefined;
}
