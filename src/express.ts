import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Authenticated } from './http/bearer-auth.ts';
import { type Admission, BearerCheck } from './http/bearer-check.ts';
import type { BearerAuthOptions } from './http/bearer-options.ts';
import { NodeHead } from './http/received.ts';
import { endUnread, type Reply, send } from './http/replies.ts';
export type { Authenticated } from './http/bearer-auth.ts';
export type { BearerAuthOptions } from './http/bearer-options.ts';

/** A request of `node:http` that was accepted. */
export type AuthenticatedRequest = IncomingMessage & Authenticated;

/** Middleware for Express and Connect. Without them, `next` is what handles a request that was accepted. */
export type NodeMiddleware = (incoming: IncomingMessage, outgoing: ServerResponse, next: () => void) => void;

/**
 * Middleware for Express, Connect and `node:http` that accepts only requests with a valid API key, and checks it before
 * the body is read, with the answers of `bearerAuth` for Hono. A request that was accepted is an
 * `AuthenticatedRequest`. `next` is only called for those, and never with an error.
 *
 * @example
 * app.use('/backups', bearerAuth({ keys, permission: 'DOCKER:READ_ANY' }));
 * app.get('/backups', (req, res) => res.json({ by: req.principal?.apiKey.name }));
 * @example
 * const auth = bearerAuth({ keys });
 * createServer((req, res) => auth(req, res, () => res.end('Welcome.'))).listen(3000);
 */
export function bearerAuth(options: BearerAuthOptions): NodeMiddleware {
  const check = BearerCheck.of(options);
  return (incoming, outgoing, next) => {
    const head = new NodeHead(incoming);
    const enter = (admission: Admission) => {
      // While the store was asked, something else may have answered, or the client have gone.
      if (outgoing.headersSent || outgoing.destroyed) return;
      if ('refusal' in admission) return refuse(incoming, outgoing, admission.refusal);
      const request = Object.assign(incoming, {
        principal: admission.principal,
        checkAgain: async () => {
          const again = await check.again(head, admission);
          if ('refusal' in again) refuse(incoming, outgoing, again.refusal);
          else request.principal = again.principal;
          return !('refusal' in again);
        },
      });
      for (const [name, value] of Object.entries(admission.fields ?? {})) outgoing.setHeader(name, value);
      next();
    };
    const admission = check.enter(head);
    if (admission instanceof Promise) void admission.then(enter);
    else enter(admission);
  };
}

function refuse(incoming: IncomingMessage, outgoing: ServerResponse, reply: Reply): void {
  if (outgoing.headersSent || outgoing.destroyed) return;
  endUnread(incoming, outgoing);
  send(outgoing, reply);
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
