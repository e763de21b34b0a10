import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type Authenticated,
  type BearerAuthOptions,
  endUnread,
  NodeHead,
  type RefusedRequest,
  RequestChecker,
} from './http/index.ts';

/** A hook of Fastify for the moment when the head of a request has arrived. */
type OnRequestHook = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined>;

/**
 * An `onRequest` hook for Fastify that accepts only requests with a valid API key, and checks it before the body is
 * read, with the answers of `bearerAuth` for Hono. A request that was accepted has `principal` and `checkAgain`.
 */
export function bearerAuth(options: BearerAuthOptions): OnRequestHook {
  const checker = RequestChecker.of(options, {});
  return async (request, reply) => {
    const checked = await checker.enter(new NodeHead(request.raw));
    if (!checked.ok) return refuse(request, reply, checked);
    const authenticated: Authenticated = {
      principal: checked.principal,
      checkAgain: async () => {
        const again = await checked.checkAgain();
        if (again.ok) request.principal = again.principal;
        else refuse(request, reply, again);
        return again.ok;
      },
    };
    Object.assign(request, authenticated);
    reply.headers(checked.headers);
    return undefined;
  };
}

function refuse(request: FastifyRequest, reply: FastifyReply, { status, headers, body }: RefusedRequest): FastifyReply {
  endUnread(request.raw, reply.raw);
  reply.code(status).headers(headers);
  // Of a text, Fastify would change the Content-Type.
  return reply.send(request.method === 'HEAD' ? undefined : Buffer.from(body));
}

declare module 'fastify' {
  interface FastifyRequest {
    /** See `Authenticated`. Undefined where `bearerAuth` does not stand before. */
    principal?: Authenticated['principal'];
    checkAgain?: Authenticated['checkAgain'];
  }
}
