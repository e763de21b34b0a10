import type { Authenticated } from './http/authenticated.ts';

export type { Authenticated } from './http/authenticated.ts';
export type { BearerAuthOptions } from './http/bearer-options.ts';
export { bearerAuth, type OnRequestHook } from './http/fastify-hook.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** See `Authenticated`. Undefined where `bearerAuth` does not stand before. */
    principal?: Authenticated['principal'];
    checkAgain?: Authenticated['checkAgain'];
  }
}
