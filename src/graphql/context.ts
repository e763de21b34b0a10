import type { Principal } from '../keys/authorization/principal.ts';
import type { RequestBudget } from './budget/request-budget.ts';

/** The context of every resolver. */
export interface GraphQLContext {
  /** The key that makes the request. */
  readonly principal: Principal;
  /** The HTTP request, its body already read. */
  readonly request: Request;
  /** Aborted when the client has gone or the time of the request is up: pass it on to whatever takes long. */
  readonly signal: AbortSignal;
  /** Whether this is a first run whose refusals do not count: if one occurs, the request is run again. */
  readonly isSpeculative?: boolean;
}

/** The context with what only the server itself needs. */
export interface BudgetedContext extends GraphQLContext {
  /** What the request has taken of what it may take. */
  readonly budget: RequestBudget;
}
