import type { IncomingMessage } from 'node:http';
import type { Context, Hono } from 'hono';
import type { KeysService } from '../keys/service.ts';
import type { BearerEnv } from './bearer-auth.ts';
import type { FailureLog } from './failure-log.ts';
import { requestIdIn } from './hono-head.ts';
import { jsonReply, respond, unavailable } from './replies.ts';

/** Whether the process is alive, and whether its key store answers: without a key, and without details. */
const [ALIVE, READY] = ['/healthz', '/readyz'] as const;
export const HEALTH_PATHS: readonly string[] = [ALIVE, READY];

/** HTTP/1.0 needs no Host, and some load balancers check by that. Elsewhere, the host may decide what is answered. */
export function isOldHealthCheck(
  { httpVersion, headers, url = '' }: IncomingMessage,
  paths: readonly string[] = HEALTH_PATHS,
): boolean {
  return httpVersion === '1.0' && !headers.host && paths.includes(url);
}

const ok = (c: Context): Response => respond(c, jsonReply({ status: 'ok' }));

/** Adds the addresses for health checks to an app. */
export function addHealthChecks(app: Hono<BearerEnv>, keys: KeysService, failures: FailureLog): void {
  app.get(ALIVE, ok);
  app.get(READY, async (c) => {
    try {
      await keys.checkStore();
      return ok(c);
    } catch (error) {
      failures.add(error, requestIdIn(c));
      return respond(c, unavailable());
    }
  });
}
