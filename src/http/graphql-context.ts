import type { RequestBudget } from '../graphql/budget/request-budget.ts';
import type { BudgetedContext } from '../graphql/context.ts';
import type { Principal } from '../keys/authorization/principal.ts';
import type { GraphQLRequest } from './graphql-request.ts';

/** Where a context keeps the request that it was made for. */
const SOURCE = Symbol('source');

/** Created on first use. Own properties, so that copies of the context have them, too; one getter for all. */
const REQUEST: PropertyDescriptor = {
  enumerable: true,
  get(this: { [SOURCE]: GraphQLRequest }): Request {
    return this[SOURCE].webRequest;
  },
};
const SIGNAL: PropertyDescriptor = {
  enumerable: true,
  get(this: { budget: RequestBudget }): AbortSignal {
    return this.budget.signal;
  },
};

/** The context of a request for its resolvers. */
export function contextOf(request: GraphQLRequest, principal: Principal, budget: RequestBudget): BudgetedContext {
  const context = { principal, budget, [SOURCE]: request };
  // Getters in a literal, and `defineProperties`, take several times as long.
  Object.defineProperty(context, 'request', REQUEST);
  return Object.defineProperty(context, 'signal', SIGNAL) as unknown as BudgetedContext;
}
