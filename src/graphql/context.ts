import type { Caller, Principal } from '../keys/authorization/index.ts';
import type { BudgetedRequest, BudgetLimits } from './execution/index.ts';

/** The context of every resolver. */
export interface GraphQLContext {
  /** The key that makes the request. */
  readonly principal: Principal;
  /** The HTTP request, its body already read. Its own signal is of no use: see `signal`. */
  readonly request: Request;
  /** Aborted when the client has gone or the time of the request is up: pass it on to whatever takes long. */
  readonly signal: AbortSignal;
}

/** Makes what a program's own resolvers find in their context beside that. */
export type CreateContext = (
  context: Omit<GraphQLContext, 'principal'> & { readonly principal: Caller },
) => object | Promise<object>;

/** The context with what only the server itself needs. */
export interface BudgetedContext extends GraphQLContext, BudgetedRequest {}

/** What the schema tells of the service beside its keys. What is missing is null. */
export interface ServiceParts {
  readonly limits?: ServiceLimits | undefined;
}

/** How much there may be, beside what is the same everywhere. */
export interface ServiceLimits {
  /** Failed credentials of one address, such as `20/m`; null for any number. */
  readonly failedCredentials: string | null;
  readonly request: BudgetLimits;
}

/** What the schema tells about the running program. */
export interface ServiceInfo {
  name: string;
  version: string;
  /** Milliseconds since 1970. */
  startedAt: number;
}
