import type { Context, Hono, MiddlewareHandler } from 'hono';
import { consentFlows } from '../../keys/repository/index.ts';
import type { BearerEnv } from '../bearer-auth.ts';
import { HonoHead, requestTo } from '../received.ts';
import { jsonReply, respond } from '../replies.ts';
import { answering, countingFailures } from './answers.ts';
import { authorizeDevice, type ConsentParts } from './endpoints.ts';
import { metadataReply, OAUTH_PATHS, PROTECTED_RESOURCE } from './issuer.ts';
import { registerClient } from './registration.ts';
import { revokeKey } from './revocation.ts';
import { giveKey, grantTypesOf } from './token.ts';

/** Adds the endpoints by which applications ask for keys. Pages of other origins may call them as they may GraphQL. */
export function addOAuth(app: Hono<BearerEnv>, allowOrigins: MiddlewareHandler, parts: ConsentParts): void {
  const { failures, issuer } = parts;
  const flows = consentFlows(parts.catalog);
  const answerMetadata = (c: Context) =>
    respond(c, metadataReply(issuer.of(c), { flows, grantTypes: grantTypesOf(parts), clients: parts.clients }));
  app.get(OAUTH_PATHS.metadata, allowOrigins, answerMetadata);
  app.get(`${OAUTH_PATHS.metadata}/*`, allowOrigins, (c) =>
    issuer.hasMetadataAt(c.req.path) ? answerMetadata(c) : c.notFound(),
  );
  if (flows.includes('CODE')) {
    app.get(PROTECTED_RESOURCE, (c) => answerResource(c, parts));
    app.get(`${PROTECTED_RESOURCE}/*`, (c) => answerResource(c, parts));
  }
  app.all(
    OAUTH_PATHS.deviceAuthorization,
    allowOrigins,
    answering((c) => authorizeDevice(c, parts), failures),
  );
  if (flows.length > 0 && parts.clients.mayRegister)
    app.all(
      OAUTH_PATHS.register,
      allowOrigins,
      answering((c) => registerClient(c, parts), failures),
    );
  app.all(OAUTH_PATHS.token, allowOrigins, answering(countingFailures(giveKey, parts), failures));
  app.all(OAUTH_PATHS.revoke, allowOrigins, answering(countingFailures(revokeKey, parts), failures));
}

/** Answers where clients get keys for the service itself, or for what it guards for proxies (RFC 9728, section 3.2). */
function answerResource(c: Context, { issuer, guarded }: ConsentParts): Response | Promise<Response> {
  const request = new HonoHead(c);
  if (!issuer.isOwn(request)) {
    const reply = guarded?.answer({ ...requestTo(issuer.seenBy(request) + c.req.path), method: c.req.method });
    return reply ? respond(c, reply) : c.notFound();
  }
  const [service, about] = [issuer.of(c), c.req.path.slice(PROTECTED_RESOURCE.length)];
  const resource = service + (about.endsWith('/graphql') ? '/graphql' : '');
  if (about !== '' && about !== new URL(resource).pathname) return c.notFound();
  const metadata = { resource, authorization_servers: [service], bearer_methods_supported: ['header'] };
  return respond(c, jsonReply(metadata, { 'Access-Control-Allow-Origin': '*' }));
}
