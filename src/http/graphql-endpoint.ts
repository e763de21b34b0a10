import { graphqlServer } from '@hono/graphql-server';
import { type ExecutionResult, GraphQLError, type GraphQLSchema } from 'graphql';
import type { Context, Handler } from 'hono';
import { amountFor } from '../graphql/budget/amount.ts';
import { writeAnswer } from '../graphql/budget/answer.ts';
import { costOf } from '../graphql/budget/cost.ts';
import { clientGone, costExceeded } from '../graphql/budget/errors.ts';
import type { Budgets, RequestBudget } from '../graphql/budget/request-budget.ts';
import type { CompiledOperations } from '../graphql/compiled-operations.ts';
import type { BudgetedContext } from '../graphql/context.ts';
import { isIntrospection, readDocument } from '../graphql/document.ts';
import type { ServedSchema } from '../graphql/schema.ts';
import { type Log, NO_LOG } from '../log.ts';
import type { BearerEnv } from './bearer-check.ts';
import type { AbandonedRequest } from './fast-path.ts';
import { errorsInOrder, formatGraphQLError } from './graphql-errors.ts';
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
  { operations, budgets, log = NO_LOG }: { operations: CompiledOperations; budgets: Budgets; log?: Log },
): Handler<BearerEnv> {
  const runPublished = runnerOf(schema.published);
  const runExecuted = runnerOf(schema.executed);

  return async (c) => {
    if (c.req.method !== 'POST')
      return refuse(c, 405, 'METHOD_NOT_ALLOWED', 'GraphQL is served by POST only.', { Allow: 'POST' });
    let type: ResponseType = JSON_RESPONSE;
    const budget = abandonedBudgetOf(c) ?? budgets.start();
    try {
      type = negotiate(c.req.raw.headers.get('accept'));
      const parameters = await readGraphQLRequest(c.req.raw);
      const { query, operationName, variables } = parameters;
      const document = readDocument(query, operationName);
      const isPublished = isIntrospection(document, operationName);
      const cost = amountFor(costOf(schema.executed, document, operationName), variables);
      if (cost > budget.limits.cost) throw costExceeded(cost, budget.limits.cost);
      const refusal = await c.get('checkAgain')();
      if (refusal) return refusal;
      const run = isPublished ? runPublished : runExecuted;
      const result = await runWithin(budget, c.req.raw, (context) =>
        run(parameters, { principal: c.get('principal'), request: c.req.raw, ...context }),
      );
      if ('data' in result && !isPublished) operations.add(query, operationName, document);
      return await reply(c, type, result, { budget, log });
    } catch (error) {
      if (error instanceof RequestRefused) return send(c, type, error.status, errorBody(error.message, error.code));
      if (error instanceof GraphQLError) return reply(c, type, { errors: [error] }, { budget, log });
      throw error;
    }
  };
}

/** Runs a request until it is done, its time is up, or its client has gone. */
async function runWithin(
  budget: RequestBudget,
  { signal }: Request,
  run: (context: Pick<BudgetedContext, 'budget' | 'signal'>) => Promise<ExecutionResult>,
): Promise<ExecutionResult> {
  const abandon = () => budget.abandon(clientGone());
  signal.addEventListener('abort', abandon, { once: true });
  try {
    return await budget.within(run({ budget, signal: budget.signal }));
  } catch (error) {
    return { data: null, errors: [error as GraphQLError] };
  } finally {
    signal.removeEventListener('abort', abandon);
  }
}

/** The budget of a request that the fast path had to abandon. */
function abandonedBudgetOf({ env }: Context): RequestBudget | undefined {
  return (env as { incoming?: AbandonedRequest } | undefined)?.incoming?.abandoned;
}

type Run = (parameters: GraphQLParameters, context: BudgetedContext) => Promise<ExecutionResult>;

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

/** Replies with a result; if it is too large, with an error in its place. */
async function reply(
  c: Context,
  type: ResponseType,
  result: ExecutionResult,
  { budget, log }: { budget: RequestBudget; log: Log },
): Promise<Response> {
  const errors = result.errors && errorsInOrder(result).map((error) => formatGraphQLError(error, log));
  // Only the newer media type has a 4xx status for a request that was not executed.
  const status = !('data' in result) && type === GRAPHQL_RESPONSE ? 400 : 200;
  try {
    const text = await writeAnswer(
      { ...(errors && { errors }), ...('data' in result && { data: result.data }) },
      budget,
    );
    return sendText(c, type, status, text);
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    return send(c, type, status, { errors: [formatGraphQLError(error, log)], data: null });
  }
}

type Status = 200 | RequestRefused['status'];

function send(c: Context, type: ResponseType, status: Status, body: object): Response {
  return sendText(c, type, status, JSON.stringify(body));
}

function sendText(c: Context, type: ResponseType, status: Status, text: string): Response {
  return c.body(text, status, { 'Content-Type': `${type}; charset=utf-8`, ...NO_STORE });
}
