import { type BudgetLimits, Budgets, type ServiceParts } from '../graphql/index.ts';
import { failedCredentialsBy } from '../http/index.ts';

/** The options of a service that its schema shows. */
interface DescribedService {
  limits?: Partial<BudgetLimits>;
  failedCredentials?: string | false;
}

/** The facts about a service in its schema. @throws RangeError if a limit is invalid */
export function describeService({ limits, failedCredentials }: DescribedService): ServiceParts {
  return {
    limits: {
      failedCredentials: failedCredentialsBy(failedCredentials)?.limit ?? null,
      request: new Budgets(limits).limits,
    },
  };
}
