import { graphqlServer } from '@hono/graphql-server';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import type { Context } from 'hono';
import { LRUCache } from 'lru-cache';
import type { GraphQLParameters } from './graphql-parameters.ts';

/** How many results are kept, and the characters of their documents, of some 150 bytes, and of their messages. */
const MAX_KEPT = 100;
const MAX_KEPT_CHARACTERS = 100_000;

/** Stands for the result of a document that was sent once: most of those that differ each time never come again. */
const SEEN: ExecutionResult = {};

/** Documents that are not valid, and what is wrong with them: a client that is out of date sends one all the time. */
export class InvalidDocuments {
  readonly #handle: (parameters: GraphQLParameters) => Promise<ExecutionResult>;
  readonly #results = new LRUCache<string, ExecutionResult>({
    max: MAX_KEPT,
    maxSize: MAX_KEPT_CHARACTERS,
    sizeCalculation: ({ errors = [] }, query) =>
      errors.reduce((sum, { message }) => sum + message.length, query.length + 1),
  });

  constructor(schema: GraphQLSchema) {
    this.#handle = handlerOf(schema);
  }

  /** The result of a request for a document that was told twice. */
  find(query: string): ExecutionResult | undefined {
    const result = this.#results.get(query);
    return result === SEEN ? undefined : result;
  }

  /** The result of a request for a document that is not valid: it depends on nothing else. */
  async tell(parameters: GraphQLParameters): Promise<ExecutionResult> {
    const result = await this.#handle(parameters);
    const { query } = parameters;
    if (result.data === undefined) this.#results.set(query, this.#results.has(query) ? result : SEEN);
    return result;
  }
}

/**
 * Calls the handler of `@hono/graphql-server` with the four members of a request that it reads, and captures what it
 * would have sent: its status is wrong. This relies on internals of version 0.7, so that version is pinned.
 */
function handlerOf(schema: GraphQLSchema): (parameters: GraphQLParameters) => Promise<ExecutionResult> {
  const handler = graphqlServer({ schema });
  const headers = new Headers({ 'content-type': 'application/json' });
  return async (parameters) => {
    const raw = {
      method: 'POST',
      url: '/',
      headers,
      json: async () => parameters,
    };
    let result: ExecutionResult = {};
    const json = (body: ExecutionResult) => void (result = body);
    await handler({ req: { method: 'POST', raw }, json } as unknown as Context, async () => {});
    return result;
  };
}
