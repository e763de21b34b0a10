import { Hono } from 'hono';
import { type BudgetLimits, Budgets } from '../graphql/budget/request-budget.ts';
import type { ServedSchema } from '../graphql/schema.ts';
import type { KeysService } from '../keys/service.ts';
import { type Log, NO_LOG } from '../log.ts';
import { CompiledOperations } from '../graphql/compiled-operations.ts';
import { bearerAuthWith } from './bearer-auth.ts';
import type { BearerEnv } from './bearer-check.ts';
import { FailureLog } from './failure-log.ts';
import { graphqlEndpoint } from './graphql-endpoint.ts';
import { graphqlFastPath, type FastPath } from './fast-path.ts';
import { RefusalLog } from './refusal-log.ts';
import { errorBody, NO_STORE, refuse, unavailable } from './replies.ts';

/** What the service is made of. */
export interface AppOptions {
  keys: KeysService;
  schema: ServedSchema;
  limits?: Partial<BudgetLimits>;
  log?: Log;
}

/** The service as a Hono app, with what `listen` uses beside it. */
export type ServiceApp = Hono<BearerEnv> & {
  /** The fast path for repeated requests. */
  readonly fastPath: FastPath;
  /** Logs what clients are refused, in sums. */
  readonly refusals: RefusalLog;
  /** Logs that the store did not answer, in sums. */
  readonly failures: FailureLog;
};

/** The service: `/graphql` behind the bearer check, `/healthz` and `/readyz` open, and 404 as JSON for all else. */
export function createHttpApp({ keys, schema, limits, log = NO_LOG }: AppOptions): ServiceApp {
  const app = new Hono<BearerEnv>();
  const operations = new CompiledOperations(schema.executed);
  const budgets = new Budgets(limits);
  const logs = { refusals: new RefusalLog(log), failures: new FailureLog(log) };
  app.all('/graphql', bearerAuthWith({ keys }, logs), graphqlEndpoint(schema, { operations, budgets, log }));
  app.get('/healthz', (c) => c.json({ status: 'ok' }, 200, NO_STORE));
  app.get('/readyz', async (c) => {
    try {
      await keys.check();
      return c.json({ status: 'ok' }, 200, NO_STORE);
    } catch (error) {
      logs.failures.add(error);
      return unavailable(c);
    }
  });
  app.notFound((c) => refuse(c, 404, 'NOT_FOUND', 'There is nothing at this address. GraphQL is at POST /graphql.'));
  app.onError((error, c) => {
    const requestId = crypto.randomUUID();
    log.error({ err: error, requestId }, 'a request failed');
    return c.json(errorBody('Internal server error', 'INTERNAL_SERVER_ERROR', { requestId }), 500, NO_STORE);
  });
  return Object.assign(app, {
    fastPath: graphqlFastPath(keys, operations, budgets),
    ...logs,
  });
}
