import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Authenticated } from './http/bearer-auth.ts';
import { BearerCheck } from './http/bearer-check.ts';
import type { BearerAuthOptions } from './http/bearer-options.ts';
import { NodeHead } from './http/received.ts';
import { endUnread, headersOf, type Reply } from './http/replies.ts';
export type { Authenticated } from './http/bearer-auth.ts';
export type { BearerAuthOptions } from './http/bearer-options.ts';

/** A hook of Fastify for the moment when the head of a request has arrived. */
export type OnRequestHook = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined>;

/**
 * An `onRequest` hook for Fastify that accepts only requests with a valid API key, and checks it before the body is
 * read, with the answers of `bearerAuth` for Hono. A request that was accepted has `principal` and `checkAgain`.
 *
 * @example
 * app.addHook('onRequest', bearerAuth({ keys }));
 * app.get('/', async (request) => ({ by: request.principal?.apiKey.name }));
 * @example
 * const onRequest = bearerAuth({ keys, permission: 'DOCKER:UPDATE_ANY' });
 * app.post('/restart', { onRequest }, async (request, reply) => {
 *   if (!(await request.checkAgain!())) return reply;
 *   return restart(request.body);
 * });
 */
export function bearerAuth(options: BearerAuthOptions): OnRequestHook {
  const check = BearerCheck.of(options);
  return async (request, reply) => {
    const head = new NodeHead(request.raw);
    const admission = await check.enter(head);
    if ('refusal' in admission) return refuse(request, reply, admission.refusal);
    const authenticated: Authenticated = {
      principal: admission.principal,
      checkAgain: async () => {
        const again = await check.again(head, admission);
        if ('refusal' in again) refuse(request, reply, again.refusal);
        else request.principal = again.principal;
        return !('refusal' in again);
      },
    };
    Object.assign(request, authenticated);
    if (admission.fields) reply.headers(admission.fields);
    return undefined;
  };
}

function refuse(request: FastifyRequest, reply: FastifyReply, refusal: Reply): FastifyReply {
  endUnread(request.raw, reply.raw);
  reply.code(refusal.status).headers(Object.fromEntries(headersOf(refusal)));
  // Of a text, Fastify would change the Content-Type.
  return reply.send(request.method === 'HEAD' ? undefined : Buffer.from(refusal.text));
}

declare module 'fastify' {
  interface FastifyRequest {
    /** See `Authenticated`. Undefined where `bearerAuth` does not stand before. */
    principal?: Authenticated['principal'];
    checkAgain?: Authenticated['checkAgain'];
  }
}
