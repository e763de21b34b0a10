import type { Context, Hono, MiddlewareHandler } from 'hono';
import { consentFlows } from '../../keys/requests/consent-request.ts';
import type { BearerEnv } from '../bearer-auth.ts';
import { respond } from '../replies.ts';
import { answering, unlessFailing } from './answers.ts';
import { type DecisionParts, Decisions } from './decisions.ts';
import { authorizeDevice, giveKey } from './endpoints.ts';
import { metadataReply, OAUTH_PATHS } from './metadata.ts';
import { revokeKey } from './revocation.ts';

/**
 * Adds the endpoints by which applications ask for keys, and the pages on which people decide. Pages of other origins
 * may call the endpoints as they may GraphQL, but never the pages.
 */
export function addOAuth(app: Hono<BearerEnv>, allowOrigins: MiddlewareHandler, parts: DecisionParts): void {
  const { failures, issuer } = parts;
  const decisions = new Decisions(parts);
  const flows = consentFlows(parts.catalog);
  const answerMetadata = (c: Context) =>
    flows.length > 0 ? respond(c, metadataReply(issuer.of(c), flows)) : c.notFound();
  app.get(OAUTH_PATHS.metadata, allowOrigins, answerMetadata);
  app.get(`${OAUTH_PATHS.metadata}/*`, allowOrigins, (c) =>
    issuer.hasMetadataAt(c.req.path) ? answerMetadata(c) : c.notFound(),
  );
  app.all(
    OAUTH_PATHS.deviceAuthorization,
    allowOrigins,
    answering((c) => authorizeDevice(c, parts), failures),
  );
  app.all(OAUTH_PATHS.token, allowOrigins, answering(unlessFailing(giveKey, parts), failures));
  app.all(OAUTH_PATHS.revoke, allowOrigins, answering(unlessFailing(revokeKey, parts), failures));
  app.get(OAUTH_PATHS.authorize, decisions.showRedirect);
  app.post(OAUTH_PATHS.authorize, decisions.decideRedirect);
  app.get(OAUTH_PATHS.device, decisions.showDevice);
  app.post(OAUTH_PATHS.device, decisions.decideDevice);
}
