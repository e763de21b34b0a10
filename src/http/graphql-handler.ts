import { graphqlServer } from '@hono/graphql-server';
import { type ExecutionResult, GraphQLError, type GraphQLSchema, NoFragmentCyclesRule, parse, validate } from 'graphql';
import type { Context } from 'hono';
import { LRUCache } from 'lru-cache';
import { withoutStackTrace } from '../keys/errors.ts';
import type { GraphQLParameters } from './graphql-parameters.ts';

/** How many results are kept, and the characters of their documents and messages. */
const MAX_KEPT = 100;
const MAX_KEPT_CHARACTERS = 100_000;

/** Stands for the result of a document that was sent once: most of those that differ each time never come again. */
const SEEN: ExecutionResult = {};

/** Documents that are not valid, and what is wrong with them: a client that is out of date sends one all the time. */
export class InvalidDocuments {
  readonly #schema: GraphQLSchema;
  readonly #handle: (parameters: GraphQLParameters) => Promise<ExecutionResult>;
  readonly #results = new LRUCache<string, ExecutionResult>({
    max: MAX_KEPT,
    maxSize: MAX_KEPT_CHARACTERS,
    sizeCalculation: ({ errors = [] }, query) =>
      errors.reduce((sum, { message }) => sum + message.length, query.length + 1),
  });

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
    this.#handle = handlerOf(schema);
  }

  /** The result of a request for a document that was told twice. */
  find(query: string): ExecutionResult | undefined {
    const result = this.#results.get(query);
    return result === SEEN ? undefined : result;
  }

  /** The result of a request for a document that is not valid: it depends on nothing else, unless a scalar failed. */
  async tell(parameters: GraphQLParameters): Promise<ExecutionResult> {
    const { query } = parameters;
    const result = await this.#handle(parameters).catch((error) => this.#cyclesIn(query, error));
    if (result.data === undefined && !result.errors?.some(({ originalError }) => originalError))
      this.#results.set(query, this.#results.has(query) ? errorsOf(result) : SEEN);
    return result;
  }

  /** What is wrong with fragments in so many cycles that comparing their fields exhausts the stack of graphql-js. */
  #cyclesIn(query: string, failure: unknown): ExecutionResult {
    if (!(failure instanceof RangeError)) throw failure;
    return { errors: validate(this.#schema, parse(query), [NoFragmentCyclesRule]) };
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
