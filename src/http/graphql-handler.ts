import { graphqlServer } from '@hono/graphql-server';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import type { Context } from 'hono';
import type { BudgetedContext } from '../graphql/context.ts';
import type { GraphQLParameters } from './graphql-parameters.ts';

/** Validates and executes a document that is not prepared. */
export type GraphQLHandler = (parameters: GraphQLParameters, context: BudgetedContext) => Promise<ExecutionResult>;

/**
 * Calls the handler of `@hono/graphql-server` with the four members of a request that it reads, and captures what it
 * would have sent: its status is wrong, and it omits `data: null`. This relies on internals of version 0.7, so that
 * version is pinned.
 */
export function graphqlHandler(schema: GraphQLSchema): GraphQLHandler {
  const handler = graphqlServer({ schema });
  const headers = new Headers({ 'content-type': 'application/json' });
  return async (parameters, context) => {
    const raw = {
      method: 'POST',
      url: '/',
      headers,
      json: async () => parameters,
    };
    let result: ExecutionResult = {};
    // Resolvers get this context. They do not see these when they copy it.
    Object.defineProperties(context, {
      req: { value: { method: 'POST', raw } },
      json: { value: (body: ExecutionResult) => void (result = body) },
    });
    await handler(context as unknown as Context, async () => {});
    const failedInField = result.data === undefined && result.errors?.some(({ path }) => path !== undefined);
    return failedInField ? { data: null, ...result } : result;
  };
}
