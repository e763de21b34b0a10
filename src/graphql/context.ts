import type { Caller, Principal } from '../keys/authorization/index.ts';
import type { BudgetedRequest, BudgetLimits } from './execution/index.ts';

/** The context of every resolver. */
export interface GraphQLContext {
  /** The key that makes the request. */
  readonly principal: Principal;
  /** The HTTP request, after its body was read. Do not use its own signal, but `signal`. */
  readonly request: Request;
  /** Aborted when the client disconnects or the request's time is up. Pass it on to anything that takes long. */
  readonly signal: AbortSignal;
}

/** Makes further properties of the context for a program's own resolvers. */
export type CreateContext = (
  context: Omit<GraphQLContext, 'principal'> & { readonly principal: Caller },
) => object | Promise<object>;

/** The context with properties for the server alone. */
export interface BudgetedContext extends GraphQLContext, BudgetedRequest {}

/** Facts about the service, besides its keys, in the schema. Missing ones are null. */
export interface ServiceParts {
  readonly limits?: ServiceLimits | undefined;
}

/** The limits of this service, besides those that are the same everywhere. */
export interface ServiceLimits {
  /** Failed credentials of one address, such as `20/m`; null for no limit. */
  readonly failedCredentials: string | null;
  readonly request: BudgetLimits;
}

/** Facts about the running program in the schema. */
export interface ServiceInfo {
  name: string;
  version: string;
  /** Milliseconds since 1970. */
  startedAt: number;
}
