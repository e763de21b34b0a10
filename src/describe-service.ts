import { type BudgetLimits, Budgets } from './graphql/execution/index.ts';
import type { ServiceParts } from './graphql/context.ts';
import { failedCredentialsBy } from './http/bearer-options.ts';
import { routeExplainer } from './route-explainer.ts';
import type { Router } from './routes/router.ts';

/** What a service is made of, as far as its schema tells of it. */
export interface DescribedService {
  router: Router;
  /** The file of configuration; undefined if there is none. */
  file: string | undefined;
  limits?: Partial<BudgetLimits>;
  failedCredentials?: string | false;
}

/** What the schema tells of a service. @throws RangeError if a limit is invalid */
export function describeService({ router, file, limits, failedCredentials }: DescribedService): ServiceParts {
  return {
    routes: routeExplainer(router, file !== undefined),
    limits: {
      failedCredentials: failedCredentialsBy(failedCredentials)?.limit ?? null,
      request: new Budgets(limits).limits,
    },
  };
}
