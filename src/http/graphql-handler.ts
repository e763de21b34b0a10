import { graphqlServer } from '@hono/graphql-server';
import { type ExecutionResult, GraphQLError, type GraphQLSchema } from 'graphql';
import type { Context } from 'hono';
import { LRUCache } from 'lru-cache';
import { withoutStackTrace } from '../keys/errors.ts';
import type { GraphQLParameters } from './graphql-parameters.ts';

/** How many results are kept, and the characters of their documents and messages. */
const MAX_KEPT = 100;
const MAX_KEPT_CHARACTERS = 100_000;

/** Stands for the result of a document that was sent once: most of those that differ each time never come again. */
const SEEN: ExecutionResult = {};

/** Is thrown where the handler begins to execute a valid document. It passes on what is no `Error`. */
const VALID = Symbol('valid');

/**
 * Has `@hono/graphql-server` handle documents that are seen for the first time: it parses and validates them, and tells
 * what is wrong with them, which is kept: a client that is out of date sends the same all the time.
 */
export class FirstHandler {
  readonly #handle: (parameters: GraphQLParameters) => Promise<ExecutionResult | typeof VALID>;
  readonly #results = new LRUCache<string, ExecutionResult>({
    max: MAX_KEPT,
    maxSize: MAX_KEPT_CHARACTERS,
    sizeCalculation: ({ errors = [] }, query) =>
      errors.reduce((sum, { message }) => sum + message.length, query.length + 1),
  });

  constructor(schema: GraphQLSchema) {
    this.#handle = handlerOf(schema);
  }

  /** The result of a request for a document that was found not to be valid twice. */
  findInvalid(query: string): ExecutionResult | undefined {
    const result = this.#results.get(query);
    return result === SEEN ? undefined : result;
  }

  /**
   * Validates the document of a request. Call `readDocument` first: it bounds what that takes.
   * @returns what is wrong with it; undefined if it is valid
   */
  async validate(parameters: GraphQLParameters): Promise<ExecutionResult | undefined> {
    const { query } = parameters;
    const result = await this.#handle(parameters);
    if (result === VALID) return undefined;
    // A scalar that failed may not fail the next time.
    if (!result.errors?.some(({ originalError }) => originalError))
      this.#results.set(query, this.#results.has(query) ? errorsOf(result) : SEEN);
    return result;
  }
}

/** The errors of a result alone: those of graphql-js hold the document and, by their stacks, all that made them. */
function errorsOf({ errors = [] }: ExecutionResult): ExecutionResult {
  return withoutStackTrace(() => ({
    errors: errors.map(
      ({ message, source, positions, path, extensions }) =>
        new GraphQLError(message, { source, positions, path, extensions }),
    ),
  }));
}

/**
 * Calls the handler of `@hono/graphql-server` with the four members of a request that it reads, and captures what it
 * would have sent: its status is wrong. This relies on internals of version 0.7, so that version is pinned.
 */
function handlerOf(schema: GraphQLSchema): (parameters: GraphQLParameters) => Promise<ExecutionResult | typeof VALID> {
  const handler = graphqlServer({
    schema,
    rootResolver: () => {
      throw VALID;
    },
  });
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
    try {
      await handler({ req: { method: 'POST', raw }, json } as unknown as Context, async () => {});
    } catch (thrown) {
      if (thrown === VALID) return VALID;
      throw thrown;
    }
    return result;
  };
}
