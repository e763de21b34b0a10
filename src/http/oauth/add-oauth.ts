import type { Context, Hono, MiddlewareHandler } from 'hono';
import { consentFlows } from '../../keys/repository/index.ts';
import type { BearerEnv } from '../bearer-auth.ts';
import { respond } from '../replies.ts';
import { answering, countingFailures } from './answers.ts';
import { authorizeDevice, type ConsentParts } from './endpoints.ts';
import { metadataReply, OAUTH_PATHS } from './issuer.ts';
import { revokeKey } from './revocation.ts';
import { giveKey, grantTypesOf } from './token.ts';

/** Adds the endpoints by which applications ask for keys. Pages of other origins may call them as they may GraphQL. */
export function addOAuth(app: Hono<BearerEnv>, allowOrigins: MiddlewareHandler, parts: ConsentParts): void {
  const { failures, issuer } = parts;
  const flows = consentFlows(parts.catalog);
  const answerMetadata = (c: Context) =>
    respond(c, metadataReply(issuer.of(c), { flows, grantTypes: grantTypesOf(parts) }));
  app.get(OAUTH_PATHS.metadata, allowOrigins, answerMetadata);
  app.get(`${OAUTH_PATHS.metadata}/*`, allowOrigins, (c) =>
    issuer.hasMetadataAt(c.req.path) ? answerMetadata(c) : c.notFound(),
  );
  app.all(
    OAUTH_PATHS.deviceAuthorization,
    allowOrigins,
    answering((c) => authorizeDevice(c, parts), failures),
  );
  app.all(OAUTH_PATHS.token, allowOrigins, answering(countingFailures(giveKey, parts), failures));
  app.all(OAUTH_PATHS.revoke, allowOrigins, answering(countingFailures(revokeKey, parts), failures));
}
