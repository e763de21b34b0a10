import type { MiddlewareHandler } from 'hono';
import { NO_LOG } from '../log.ts';
import { type BearerAuthOptions, BearerCheck, type BearerEnv, type CheckLogs } from './bearer-check.ts';
import { FailureLog } from './failure-log.ts';
import { RefusalLog } from './refusal-log.ts';

/**
 * Hono middleware that accepts only requests with a valid API key (RFC 6750), and checks it before the body is read.
 * No credentials: 401. A malformed header: 400 `invalid_request`. A key that is not valid, for whatever reason: 401
 * `invalid_token`. A key without the permission: 403 `insufficient_scope`. A store that does not answer: 503.
 *
 * @example
 * const keys = await openKeys();
 * const app = new Hono().use(bearerAuth({ keys })).get('/', (c) => c.text(c.get('principal').key.name));
 * @example
 * app.post('/restart', async (c) => {
 *   const { service } = await c.req.json();
 *   return (await c.get('checkAgain')()) ?? restart(c, service);
 * });
 */
export function bearerAuth(options: BearerAuthOptions): MiddlewareHandler<BearerEnv> {
  const { log = NO_LOG } = options;
  return bearerAuthWith(options, { refusals: new RefusalLog(log), failures: new FailureLog(log) });
}

/** The same, with logs that its caller can finish. */
export function bearerAuthWith(options: BearerAuthOptions, logs: CheckLogs): MiddlewareHandler<BearerEnv> {
  const check = new BearerCheck(options, logs);
  return async (c, next) => {
    const refusal = await check.enter(c);
    if (refusal) return refusal;
    c.set('checkAgain', () => check.again(c));
    return next();
  };
}
