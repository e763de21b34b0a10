import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { basePath } from 'hono/route';
import type { HttpApp, ServiceApp } from '../http/app.ts';
import { answersOfTurn } from '../http/answers-of-turn.ts';
import { isForProxies } from '../http/for-proxies.ts';
import { HonoHead } from '../http/hono-head.ts';
import { NodeHead } from '../http/node-head.ts';
import { REPLY_HEADERS, respond, send } from '../http/replies.ts';
import { readAsked } from './forward-auth/asked-request.ts';
import { ForwardAuth, type ForwardAuthOptions, type Verdict } from './forward-auth/forward-auth.ts';

const PASSED = { ...REPLY_HEADERS, 'Content-Length': '0' };

/** Adds the endpoints of forward-auth to an app, at `/auth/…`. */
export function serveForwardAuth(app: HttpApp, options: Omit<ForwardAuthOptions, 'check' | 'logs'>): ServiceApp {
  const forwardAuth = new ForwardAuth({ check: app.check, logs: app, ...options });
  // For an app that is mounted in another one, whose middleware comes first.
  app.all('/auth/*', async (c) => {
    const verdict = await forwardAuth.decide(new HonoHead(c), (requirements) => {
      // Who asks is known, so it came by Node.
      const { incoming } = c.env as HttpBindings;
      return readAsked(incoming, incoming.url!.slice(basePath(c).replace(/\/$/, '').length), requirements);
    });
    if ('refusal' in verdict) return respond(c, verdict.refusal);
    return c.body(null, 200, { ...PASSED, ...verdict.identity });
  });
  const answerProxy = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { url = '' } = incoming;
    if (!isForProxies(url)) return false;
    const asking = new NodeHead(incoming);
    const verdict = forwardAuth.decide(asking, (requirements) => readAsked(incoming, url, requirements));
    const settle = (verdict: Verdict) => answersOfTurn.add(outgoing, () => answer(outgoing, verdict));
    if (verdict instanceof Promise) void verdict.then(settle);
    else settle(verdict);
    return true;
  };
  return Object.assign(app, { answerProxy });
}

function answer(outgoing: ServerResponse, verdict: Verdict): void {
  if ('refusal' in verdict) return send(outgoing, verdict.refusal);
  outgoing.writeHead(200, { ...PASSED, ...verdict.identity }).end();
}
