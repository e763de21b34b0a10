import type { Principal } from '../keys/authorization/principal.ts';

/** What a request has that was let in, by Express, Fastify or Node alone. */
export interface Authenticated {
  /** The authenticated key. */
  principal: Principal;
  /**
   * Checks the key again, as it is now: the one that was let in may have been deleted while its body arrived. Call it
   * once the body has been read. If the key must be refused, answers the request, and resolves to false; otherwise
   * `principal` is up to date.
   */
  checkAgain(): Promise<boolean>;
}
