import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Authenticated } from './authenticated.ts';
import { type Admission, BearerCheck } from './bearer-check.ts';
import type { BearerAuthOptions } from './bearer-options.ts';
import { NodeHead } from './node-head.ts';
import { type Reply, send } from './replies.ts';

/** A request of `node:http` that was let in. */
export type AuthenticatedRequest = IncomingMessage & Authenticated;

/** Middleware for Express and Connect. Without them, `next` is what handles a request that was let in. */
export type NodeMiddleware = (incoming: IncomingMessage, outgoing: ServerResponse, next: () => void) => void;

/** How long a refused request's body is still taken, in milliseconds: its client may read only once it has sent it. */
const LINGER_MS = 500;

/**
 * Middleware for Express, Connect and `node:http` that accepts only requests with a valid API key, and checks it before
 * the body is read, with the answers of `bearerAuth` for Hono. A request that was let in is an `AuthenticatedRequest`.
 * `next` is only called for those, and never with an error.
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

/** Closes the connection of a request whose body goes on for long after it was answered: nobody reads that. */
export function endUnread(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (incoming.complete) return;
  outgoing.once('finish', () => {
    const timer = setTimeout(() => incoming.destroy(), LINGER_MS).unref();
    incoming.once('close', () => clearTimeout(timer));
  });
}
