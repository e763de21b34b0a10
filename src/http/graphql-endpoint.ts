import { graphqlServer } from '@hono/graphql-server';
import { type ExecutionResult, GraphQLError, type GraphQLFormattedError, type GraphQLSchema } from 'graphql';
import type { Context, Handler } from 'hono';
import type { CompiledOperations } from '../graphql/compiled-operations.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { isIntrospection, readDocument } from '../graphql/document.ts';
import type { ServedSchema } from '../graphql/schema.ts';
import { type Log, NO_LOG } from '../log.ts';
import type { BearerEnv } from './bearer-auth.ts';
import { formatGraphQLError } from './graphql-errors.ts';
import { type GraphQLParameters, readGraphQLRequest } from './graphql-request.ts';
import { RequestRefused } from './request-refused.ts';
import { GRAPHQL_RESPONSE, JSON_RESPONSE, negotiate, type ResponseType } from './media-type.ts';
import { errorBody, NO_STORE, refuse } from './replies.ts';

/**
 * Serves GraphQL over HTTP by POST, behind `bearerAuth`. The handler of `@hono/graphql-server` validates and executes
 * the document; this adds what else the specification draft and safety require: media types, limits, status codes,
 * `data: null`, and errors without internals.
 */
export function graphqlEndpoint(
  schema: ServedSchema,
  operations: CompiledOperations,
  log: Log = NO_LOG,
): Handler<BearerEnv> {
  const runPublished = runnerOf(schema.published);
  const runExecuted = runnerOf(schema.executed);

  return async (c) => {
    if (c.req.method !== 'POST')
      return refuse(c, 405, 'METHOD_NOT_ALLOWED', 'GraphQL is served by POST only.', { Allow: 'POST' });
    let type: ResponseType = JSON_RESPONSE;
    try {
      type = negotiate(c.req.raw.headers.get('accept'));
      const parameters = await readGraphQLRequest(c.req.raw);
      const document = readDocument(parameters.query, parameters.operationName);
      const run = isIntrospection(document, parameters.operationName) ? runPublished : runExecuted;
      const result = await run(parameters, { principal: c.get('principal'), request: c.req.raw });
      if ('data' in result && run === runExecuted) operations.add(parameters.query, parameters.operationName, document);
      return reply(c, type, result, log);
    } catch (error) {
      if (error instanceof RequestRefused) return send(c, type, error.status, errorBody(error.message, error.code));
      if (error instanceof GraphQLError) return reply(c, type, { errors: [error] }, log);
      throw error;
    }
  };
}

type Run = (parameters: GraphQLParameters, context: GraphQLContext) => Promise<ExecutionResult>;

/**
 * Calls the handler with the four members of a request that it reads, and captures what it would have sent: its status
 * is wrong, and it omits `data: null`. This relies on internals of version 0.7, so that version is pinned.
 */
function runnerOf(schema: GraphQLSchema): Run {
  const handler = graphqlServer({ schema });
  return async (parameters, context) => {
    const raw = {
      method: 'POST',
      url: '/',
      headers: new Headers({ 'content-type': 'application/json' }),
      json: async () => parameters,
    };
    let result: ExecutionResult = {};
    const shim = {
      ...context,
      req: { method: 'POST', raw },
      json: (body: ExecutionResult) => {
        result = body;
      },
    };
    await handler(shim as unknown as Context, async () => {});
    const failedInField = result.data === undefined && result.errors?.some(({ path }) => path !== undefined);
    return failedInField ? { data: null, ...result } : result;
  };
}

function reply(c: Context, type: ResponseType, result: ExecutionResult, log: Log): Response {
  const errors = result.errors?.map((error) => formatGraphQLError(error, log));
  const body: { errors?: GraphQLFormattedError[]; data?: unknown } = {
    ...(errors && { errors }),
    ...('data' in result && { data: result.data }),
  };
  // Only the newer media type has a 4xx status for a request that was not executed.
  const refused = !('data' in result) && type === GRAPHQL_RESPONSE;
  return send(c, type, refused ? 400 : 200, body);
}

function send(c: Context, type: ResponseType, status: 200 | RequestRefused['status'], body: object): Response {
  return c.body(JSON.stringify(body), status, { 'Content-Type': `${type}; charset=utf-8`, ...NO_STORE });
}
