import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type Authenticated,
  type BearerAuthOptions,
  endUnread,
  NodeHead,
  type RefusedRequest,
  RequestChecker,
} from './http/index.ts';

/** A hook of Fastify that runs when the head of a request has arrived. */
type OnRequestHook = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined>;

/**
 * An `onRequest` hook for Fastify that accepts only requests with a valid API key. It checks the key before the body is
 * read, and answers like `bearerAuth` for Hono. An accepted request has `principal` and `checkAgain`.
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
  // Fastify would change the Content-Type of a text.
  return reply.send(request.method === 'HEAD' ? undefined : Buffer.from(body));
}

declare module 'fastify' {
  interface FastifyRequest {
    /** See `Authenticated`. Undefined without `bearerAuth` before it. */
    principal?: Authenticated['principal'];
    checkAgain?: Authenticated['checkAgain'];
  }
}
