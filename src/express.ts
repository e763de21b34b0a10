import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Authenticated,
  type BearerAuthOptions,
  type CheckedRequest,
  endUnread,
  NodeHead,
  type RefusedRequest,
  RequestChecker,
} from './http/index.ts';

/** An accepted request of `node:http`. */
export type AuthenticatedRequest = IncomingMessage & Authenticated;

/** Middleware for Express and Connect. Without them, `next` handles an accepted request. */
type NodeMiddleware = (incoming: IncomingMessage, outgoing: ServerResponse, next: () => void) => void;

/**
 * Middleware for Express, Connect and `node:http` that accepts only requests with a valid API key. It checks the key
 * before the body is read, and answers like `bearerAuth` for Hono. An accepted request is an `AuthenticatedRequest`.
 * `next` is called only for those, and never with an error.
 */
export function bearerAuth(options: BearerAuthOptions): NodeMiddleware {
  const checker = RequestChecker.of(options, {});
  return (incoming, outgoing, next) => {
    const enter = (checked: CheckedRequest) => {
      // Meanwhile, other code can have answered, or the client can have disconnected.
      if (outgoing.headersSent || outgoing.destroyed) return;
      if (!checked.ok) return refuse(incoming, outgoing, checked);
      const request = Object.assign(incoming, {
        principal: checked.principal,
        checkAgain: async () => {
          const again = await checked.checkAgain();
          if (again.ok) request.principal = again.principal;
          else refuse(incoming, outgoing, again);
          return again.ok;
        },
      });
      for (const [name, value] of Object.entries(checked.headers)) outgoing.setHeader(name, value);
      next();
    };
    const checked = checker.enter(new NodeHead(incoming));
    if (checked instanceof Promise) void checked.then(enter);
    else enter(checked);
  };
}

function refuse(incoming: IncomingMessage, outgoing: ServerResponse, { status, headers, body }: RefusedRequest): void {
  if (outgoing.headersSent || outgoing.destroyed) return;
  endUnread(incoming, outgoing);
  // Hono also omits the length in an answer to HEAD.
  if (incoming.method === 'HEAD') outgoing.writeHead(status, headers).end();
  else outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body);
}

declare global {
  // oxlint-disable-next-line typescript/no-namespace -- this is how Express lets its requests be extended
  namespace Express {
    interface Request {
      /** See `Authenticated`. Undefined without `bearerAuth` before it. */
      principal?: Authenticated['principal'];
      checkAgain?: Authenticated['checkAgain'];
    }
  }
}
