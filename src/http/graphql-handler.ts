import { graphqlServer } from '@hono/graphql-server';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import type { Context } from 'hono';
import type { GraphQLParameters } from './graphql-parameters.ts';

/** Tells what is wrong with a document. */
export type InvalidHandler = (parameters: GraphQLParameters) => Promise<ExecutionResult>;

/**
 * Calls the handler of `@hono/graphql-server` with the four members of a request that it reads, and captures what it
 * would have sent: its status is wrong. This relies on internals of version 0.7, so that version is pinned.
 */
export function invalidHandler(schema: GraphQLSchema): InvalidHandler {
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
