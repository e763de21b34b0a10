import { type BudgetLimits, Budgets, type ServiceParts } from '../graphql/index.ts';
import { failedCredentialsBy } from '../http/index.ts';

/** What a service is made of, as far as its schema tells of it. */
interface DescribedService {
  limits?: Partial<BudgetLimits>;
  failedCredentials?: string | false;
}

/** What the schema tells of a service. @throws RangeError if a limit is invalid */
export function describeService({ limits, failedCredentials }: DescribedService): ServiceParts {
  return {
    limits: {
      failedCredentials: failedCredentialsBy(failedCredentials)?.limit ?? null,
      request: new Budgets(limits).limits,
    },
  };
}
