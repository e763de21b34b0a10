import type { Authenticated } from './http/authenticated.ts';

export type { Authenticated } from './http/authenticated.ts';
export type { BearerAuthOptions } from './http/bearer-options.ts';
export { type AuthenticatedRequest, bearerAuth, type NodeMiddleware } from './http/node-middleware.ts';

declare global {
  // oxlint-disable-next-line typescript/no-namespace -- this is how Express lets its requests be extended
  namespace Express {
    interface Request {
      /** See `Authenticated`. Undefined where `bearerAuth` does not stand before. */
      principal?: Authenticated['principal'];
      checkAgain?: Authenticated['checkAgain'];
    }
  }
}
