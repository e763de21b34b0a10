import { Hono } from 'hono';
import { type BudgetLimits, Budgets } from '../graphql/budget/request-budget.ts';
import type { ServedSchema } from '../graphql/schema.ts';
import type { KeysService } from '../keys/service.ts';
import { type Log, NO_LOG } from '../log.ts';
import { CompiledOperations } from '../graphql/compiled-operations.ts';
import { type BearerEnv, bearerAuth } from './bearer-auth.ts';
import { graphqlEndpoint } from './graphql-endpoint.ts';
import { graphqlFastPath, type FastPath } from './fast-path.ts';
import { errorBody, NO_STORE, refuse, unavailable } from './replies.ts';

/** What the service is made of. */
export interface AppOptions {
  keys: KeysService;
  schema: ServedSchema;
  limits?: Partial<BudgetLimits>;
  log?: Log;
}

/** The service as a Hono app, with the fast path that `listen` uses for repeated requests. */
export type ServiceApp = Hono<BearerEnv> & { readonly fastPath: FastPath };

/** The service: `/graphql` behind the bearer check, `/healthz` and `/readyz` open, and 404 as JSON for all else. */
export function createHttpApp({ keys, schema, limits, log = NO_LOG }: AppOptions): ServiceApp {
  const app = new Hono<BearerEnv>();
  const operations = new CompiledOperations(schema.executed);
  const budgets = new Budgets(limits);
  app.all('/graphql', bearerAuth({ keys, log }), graphqlEndpoint(schema, { operations, budgets, log }));
  app.get('/healthz', (c) => c.json({ status: 'ok' }, 200, NO_STORE));
  app.get('/readyz', async (c) => {
    try {
      await keys.check();
      return c.json({ status: 'ok' }, 200, NO_STORE);
    } catch (error) {
      log.error({ err: error }, 'the store did not answer');
      return unavailable(c);
    }
  });
  app.notFound((c) => refuse(c, 404, 'NOT_FOUND', 'There is nothing at this address. GraphQL is at POST /graphql.'));
  app.onError((error, c) => {
    const requestId = crypto.randomUUID();
    log.error({ err: error, requestId }, 'a request failed');
    return c.json(errorBody('Internal server error', 'INTERNAL_SERVER_ERROR', { requestId }), 500, NO_STORE);
  });
  return Object.assign(app, { fastPath: graphqlFastPath(keys, operations, budgets) });
}
