import type { Principal } from '../keys/authorization/principal.ts';
import type { BudgetedRequest } from './execution/index.ts';

/** The context of every resolver. */
export interface GraphQLContext {
  /** The key that makes the request. */
  readonly principal: Principal;
  /** The HTTP request, its body already read. Its own signal is of no use: see `signal`. */
  readonly request: Request;
  /** Aborted when the client has gone or the time of the request is up: pass it on to whatever takes long. */
  readonly signal: AbortSignal;
}

/** The context with what only the server itself needs. */
export interface BudgetedContext extends GraphQLContext, BudgetedRequest {}
