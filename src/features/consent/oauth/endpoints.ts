import type { Context } from 'hono';
import { HonoHead, jsonReply, originOf, readForm, requestTo, type Reply } from '../../../http/index.ts';
import { readAudience } from '../../../keys/key/index.ts';
import type { Catalog } from '../../../keys/permissions/index.ts';
import type { Grants } from '../../../keys/repository/index.ts';
import { requireFlow } from '../consent-flow.ts';
import type { NewConsentRequest } from '../ask.ts';
import type { Client } from '../clients.ts';
import { POLL_SECONDS } from '../pace.ts';
import { parseScope } from '../scope.ts';
import type { ConsentParts } from './parts.ts';
import { OAuthError, Parameters } from './oauth-error.ts';
import { OAUTH_PATHS } from './paths.ts';

/** Answers an application that shows a code to a person (RFC 8628, section 3.2). @throws OAuthError */
export async function authorizeDevice(c: Context, parts: ConsentParts): Promise<Reply> {
  requireFlow(parts.catalog, 'DEVICE');
  const { address, ...source } = originOf(c, parts);
  parts.consent.count('request', source);
  const form = await applicationForm(c);
  const client = await clientIn(c, form, parts);
  const wanted = { client, ...askedIn(form, parts), keyExpiresIn: form.get('key_expires_in'), address };
  const { request, handle, deviceCode } = await parts.consent.ask(wanted);
  parts.refusals.add('key asked for', { reason: client.id, address }, new HonoHead(c).notes);
  const page = parts.issuer.of(c) + OAUTH_PATHS.device;
  return jsonReply({
    device_code: deviceCode,
    user_code: handle,
    verification_uri: page,
    verification_uri_complete: `${page}?user_code=${handle}`,
    expires_in: Math.floor((request.expiresAt - request.createdAt) / 1000),
    interval: POLL_SECONDS,
  });
}

/**
 * Finds the application of a request. Logs an unknown one, because its owner may be waiting for it.
 * @throws OAuthError
 */
export async function clientIn(c: Context, given: Parameters, parts: ConsentParts): Promise<Client> {
  try {
    return await parts.clients.find(given);
  } catch (error) {
    if (error instanceof OAuthError && error.code === 'invalid_client') {
      const { address } = originOf(c, parts);
      parts.refusals.add(
        'client refused',
        { reason: error.code, detail: error.detail, address },
        new HonoHead(c).notes,
      );
    }
    throw error;
  }
}

/** The grants in a scope. @throws OAuthError invalid_scope */
export function grantsIn(given: Parameters, catalog: Catalog): Grants {
  return scopeIn(given.get('scope') ?? '', catalog).grants;
}

function scopeIn(scope: string, catalog: Catalog) {
  const parsed = parseScope(scope, catalog);
  if ('issue' in parsed) throw new OAuthError('invalid_scope', parsed.issue.message);
  return parsed;
}

/**
 * Reads the requested grants. Without a scope, these are the permissions needed for the resource it names, if the same
 * configuration guards that.
 * @throws OAuthError invalid_scope, invalid_target
 */
export function askedIn(
  given: Parameters,
  { catalog, places }: Pick<ConsentParts, 'catalog' | 'places'>,
): Pick<NewConsentRequest, 'roles' | 'permissions' | 'replaces' | 'audience'> {
  const audience = audienceIn(given);
  const scope = given.get('scope') ?? (audience === undefined ? '' : leastScope(audience, places));
  const { grants, replaces } = scopeIn(scope, catalog);
  return { ...grants, replaces, audience };
}

function leastScope(audience: string, { guarded }: ConsentParts['places']): string {
  const to = requestTo(audience);
  const found = guarded?.find({ ...to, method: 'POST' }) ?? guarded?.find(to);
  return found?.scope.join(' ') ?? '';
}

/** Reads the only address that the key is to be valid for (RFC 8707, section 2). @throws OAuthError invalid_target */
export function audienceIn(given: Parameters): string | undefined {
  const resource = given.get('resource');
  const audience = resource === undefined ? undefined : readAudience(resource);
  if (resource === undefined || audience !== undefined) return audience;
  throw new OAuthError('invalid_target', 'The resource must be an http or https address without a query.');
}

/** The form of a public client, which proves nothing by a secret. @throws OAuthError; RequestRefused */
export async function applicationForm(c: Context): Promise<Parameters> {
  const form = new Parameters(await readForm(c, 'Forms are accepted'));
  if (c.req.header('authorization') !== undefined || form.get('client_secret') !== undefined)
    throw new OAuthError('invalid_client', 'Clients have no secret here: send only the client_id, in the form.', 401, {
      'WWW-Authenticate': 'Basic realm="svc-api"',
    });
  return form;
}
