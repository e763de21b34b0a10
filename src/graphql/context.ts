import type { Principal } from '../keys/authorization/principal.ts';

/** What every resolver gets as its context. */
export interface GraphQLContext {
  /** The key that asks. */
  readonly principal: Principal;
  /** The HTTP request, its body already read. */
  readonly request: Request;
  /** Whether a refusal is only found out here, and the request then run again where it counts. */
  readonly isSpeculative?: boolean;
}
