import type { GraphQLSchema } from 'graphql';
import { Hono } from 'hono';
import { type BudgetLimits, Budgets } from '../graphql/budget/request-budget.ts';
import type { KeysService } from '../keys/service.ts';
import { type Log, NO_LOG } from '../log.ts';
import { bearerAuthBy, type BearerEnv } from './bearer-auth.ts';
import { BearerCheck } from './bearer-check.ts';
import { FailureLog } from './failure-log.ts';
import { GraphQLPipeline } from './graphql-pipeline.ts';
import { handlersOf } from './graphql-routes.ts';
import { RefusalLog } from './refusal-log.ts';
import { errorReply, NO_STORE, respond, unavailable } from './replies.ts';

/** What the service is made of. */
export interface AppOptions {
  keys: KeysService;
  schema: GraphQLSchema;
  limits?: Partial<BudgetLimits>;
  log?: Log;
}

/** The service as a Hono app, with what `listen` uses beside it. */
export type ServiceApp = Hono<BearerEnv> & {
  /** Logs what clients are refused, in sums. */
  readonly refusals: RefusalLog;
  /** Logs that the store did not answer, in sums. */
  readonly failures: FailureLog;
};

/** The service: `/graphql` behind the bearer check, `/healthz` and `/readyz` open, and 404 as JSON for all else. */
export function createHttpApp({ keys, schema, limits, log = NO_LOG }: AppOptions): ServiceApp {
  const app = new Hono<BearerEnv>();
  const logs = { refusals: new RefusalLog(log), failures: new FailureLog(log) };
  const check = new BearerCheck({ keys }, logs);
  const pipeline = new GraphQLPipeline({ schema, check, budgets: new Budgets(limits), log });
  app.all('/graphql', ...handlersOf(pipeline, bearerAuthBy(check)));
  app.get('/healthz', (c) => c.json({ status: 'ok' }, 200, NO_STORE));
  app.get('/readyz', async (c) => {
    try {
      await keys.check();
      return c.json({ status: 'ok' }, 200, NO_STORE);
    } catch (error) {
      logs.failures.add(error);
      return respond(c, unavailable());
    }
  });
  app.notFound((c) => {
    const message = 'There is nothing at this address. GraphQL is at POST /graphql.';
    return respond(c, errorReply(404, 'NOT_FOUND', message));
  });
  app.onError((error, c) => respond(c, pipeline.failed(error)));
  return Object.assign(app, logs);
}
