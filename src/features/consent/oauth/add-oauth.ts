import type { Context, Hono, MiddlewareHandler } from 'hono';
import {
  type BearerEnv,
  HonoHead,
  jsonReply,
  originOf,
  PROTECTED_RESOURCE,
  readJson,
  type Reply,
  requestTo,
  respond,
} from '../../../http/index.ts';
import { isRecord } from '../../../keys/basics/index.ts';
import { consentFlows } from '../consent-flow.ts';
import { registeredBy } from '../clients.ts';
import { invalidRedirect } from '../redirects.ts';
import { answeringApplications, countingFailures } from './answers.ts';
import { applicationForm, authorizeDevice } from './endpoints.ts';
import { OAuthError } from './oauth-error.ts';
import type { ConsentParts } from './parts.ts';
import { OAUTH_PATHS } from './paths.ts';
import { giveKey, grantTypesOf } from './token.ts';

/** Adds the endpoints for applications that request keys. Pages of other origins can call them like GraphQL. */
export function addOAuth(app: Hono<BearerEnv>, allowOrigins: MiddlewareHandler, parts: ConsentParts): void {
  const { failures, issuer } = parts;
  const flows = consentFlows(parts.catalog);
  const answerMetadata = (c: Context) => respond(c, jsonReply(metadataOf(issuer.of(c), parts)));
  app.get(OAUTH_PATHS.metadata, allowOrigins, answerMetadata);
  app.get(`${OAUTH_PATHS.metadata}/*`, allowOrigins, (c) =>
    issuer.path !== '/' && c.req.path === OAUTH_PATHS.metadata + issuer.path ? answerMetadata(c) : c.notFound(),
  );
  if (flows.includes('CODE')) {
    app.get(PROTECTED_RESOURCE, (c) => answerResource(c, parts));
    app.get(`${PROTECTED_RESOURCE}/*`, (c) => answerResource(c, parts));
  }
  app.all(
    OAUTH_PATHS.deviceAuthorization,
    allowOrigins,
    answeringApplications((c) => authorizeDevice(c, parts), failures),
  );
  if (flows.length > 0 && parts.clients.mayRegister)
    app.all(
      OAUTH_PATHS.register,
      allowOrigins,
      answeringApplications((c) => registerClient(c, parts), failures),
    );
  app.all(OAUTH_PATHS.token, allowOrigins, answeringApplications(countingFailures(giveKey, parts), failures));
  app.all(OAUTH_PATHS.revoke, allowOrigins, answeringApplications(countingFailures(revokeKey, parts), failures));
}

/**
 * Metadata for applications (RFC 8414, section 3.2; RFC 8628, section 4; RFC 9207, section 3): only the enabled ways to
 * request a key. The grants that exist are shown only to keys.
 */
function metadataOf(issuer: string, parts: ConsentParts): object {
  const { catalog, clients } = parts;
  const flows = consentFlows(catalog);
  const [byCode, byPage] = [flows.includes('DEVICE'), flows.includes('CODE')];
  return {
    issuer,
    ...(byPage && { authorization_endpoint: issuer + OAUTH_PATHS.authorize }),
    token_endpoint: issuer + OAUTH_PATHS.token,
    ...(byCode && { device_authorization_endpoint: issuer + OAUTH_PATHS.deviceAuthorization }),
    revocation_endpoint: issuer + OAUTH_PATHS.revoke,
    ...(clients.mayRegister && { registration_endpoint: issuer + OAUTH_PATHS.register }),
    ...(byPage && { response_types_supported: ['code'], response_modes_supported: ['query'] }),
    grant_types_supported: grantTypesOf(parts),
    ...(byPage && { code_challenge_methods_supported: ['S256'] }),
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    ...(byPage && { authorization_response_iss_parameter_supported: true }),
    ...(clients.haveDocuments && { client_id_metadata_document_supported: true }),
  };
}

/**
 * Answers where clients can get keys for the service itself, or for the services it guards behind proxies (RFC 9728,
 * section 3.2).
 */
function answerResource(c: Context, { issuer, places }: ConsentParts): Response | Promise<Response> {
  const request = new HonoHead(c);
  if (!issuer.isOwn(request)) {
    const reply = places.guarded?.answer({ ...requestTo(issuer.seenBy(request) + c.req.path), method: c.req.method });
    return reply ? respond(c, reply) : c.notFound();
  }
  const [service, about] = [issuer.of(c), c.req.path.slice(PROTECTED_RESOURCE.length).replace(/\/$/, '')];
  const resource = service + (about.endsWith('/graphql') ? '/graphql' : '');
  if (about !== '' && about !== new URL(resource).pathname) return c.notFound();
  const metadata = { resource, authorization_servers: [service], bearer_methods_supported: ['header'] };
  return respond(c, jsonReply(metadata, { 'Access-Control-Allow-Origin': '*' }));
}

/**
 * Registers an application (RFC 7591, section 3): its id says all that it has said of itself, so that nothing is kept.
 * @throws OAuthError
 */
async function registerClient(c: Context, parts: ConsentParts): Promise<Reply> {
  const { address: _, ...source } = originOf(c, parts);
  parts.consent.count('request', source);
  const said = await readJson(c, 'Clients are registered');
  if (!isRecord(said)) throw new OAuthError('invalid_client_metadata', 'The body is not a JSON object.');
  const { redirect_uris: redirects, client_name: name = 'Application', grant_types: grants } = said;
  if (!Array.isArray(redirects) || redirects.length === 0 || !redirects.every((uri) => typeof uri === 'string'))
    throw new OAuthError('invalid_redirect_uri', 'redirect_uris must be a list with at least one item.');
  const problem = redirects.map(invalidRedirect).find((message) => message !== undefined);
  if (problem !== undefined) throw new OAuthError('invalid_redirect_uri', problem);
  if (typeof name !== 'string') throw new OAuthError('invalid_client_metadata', 'client_name must be a string.');
  const refreshes = Array.isArray(grants) && grants.includes('refresh_token');
  const client = registeredBy({ name, redirects, refreshes });
  if (!client) throw new OAuthError('invalid_client_metadata', 'The name and the redirect_uris are too long.');
  const registered = {
    client_id: client.id,
    client_name: client.name,
    redirect_uris: redirects,
    grant_types: ['authorization_code', ...(refreshes ? ['refresh_token'] : [])],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  return { ...jsonReply(registered, { Pragma: 'no-cache' }), status: 201 };
}

/**
 * Revokes the key of an application (RFC 7009, section 2). The key itself is the proof, so a client needs nothing else.
 * An invalid key counts as revoked.
 * @throws OAuthError
 */
async function revokeKey(c: Context, parts: ConsentParts): Promise<Reply> {
  const form = await applicationForm(c);
  const clientId = parts.clients.idIn(form);
  const secret = form.need('token').trim();
  const created = form.get('created_keys');
  if (created !== undefined && created !== 'refuse')
    throw new OAuthError('invalid_request', 'created_keys must be "refuse" or left out.');
  const { address, ...source } = originOf(c, parts);
  const ended = await parts.consent.end({ secret, clientId, sparesCreators: created === 'refuse' }, address);
  if (ended === 'ended') return jsonReply({});
  const reason = 'reason' in ended ? ended.reason : ended.refused;
  parts.refusals.add('revocation refused', { reason, address }, new HonoHead(c).notes);
  if (ended.refused === 'not given')
    throw new OAuthError(
      'unsupported_token_type',
      'This key was not given to an application. Only people who manage keys can delete it.',
    );
  if (ended.refused === 'other client') throw new OAuthError('invalid_grant', 'This key was given to another client.');
  if (ended.refused === 'has created') {
    const keys = ended.created === 1 ? '1 API key' : `${ended.created} API keys`;
    throw new OAuthError('has_created_keys', `This key has created ${keys}, which would be deleted with it.`);
  }
  // It is answered as if it had been ended.
  parts.consent.count('failure', source);
  return jsonReply({});
}
