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

/** A request of `node:http` that was accepted. */
export type AuthenticatedRequest = IncomingMessage & Authenticated;

/** Middleware for Express and Connect. Without them, `next` is what handles a request that was accepted. */
type NodeMiddleware = (incoming: IncomingMessage, outgoing: ServerResponse, next: () => void) => void;

/**
 * Middleware for Express, Connect and `node:http` that accepts only requests with a valid API key, and checks it before
 * the body is read, with the answers of `bearerAuth` for Hono. A request that was accepted is an
 * `AuthenticatedRequest`. `next` is only called for those, and never with an error.
 */
export function bearerAuth(options: BearerAuthOptions): NodeMiddleware {
  const checker = RequestChecker.of(options, {});
  return (incoming, outgoing, next) => {
    const enter = (checked: CheckedRequest) => {
      // While the store was asked, something else may have answered, or the client have gone.
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
  // Hono leaves the length out of an answer to HEAD, too.
  if (incoming.method === 'HEAD') outgoing.writeHead(status, headers).end();
  else outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body);
}

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
