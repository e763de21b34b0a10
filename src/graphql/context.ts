import type { Principal } from '../keys/authorization/principal.ts';

/** The context of every resolver. */
export interface GraphQLContext {
  /** The key that makes the request. */
  readonly principal: Principal;
  /** The HTTP request, its body already read. */
  readonly request: Request;
  /** Whether this is a first run whose refusals do not count: if one occurs, the request is run again. */
  readonly isSpeculative?: boolean;
}
