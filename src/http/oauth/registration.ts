import type { Context } from 'hono';
import { isRecord } from '../../keys/basics/index.ts';
import { invalidRedirect, registeredBy } from '../../keys/consent/index.ts';
import { readJson } from '../form.ts';
import { jsonReply, type Reply } from '../replies.ts';
import { type ConsentParts, originOf } from './endpoints.ts';
import { OAuthError } from './oauth-error.ts';

/**
 * Registers an application (RFC 7591, section 3): its id says all that it has said of itself, so that nothing is kept.
 * @throws OAuthError
 */
export async function registerClient(c: Context, parts: ConsentParts): Promise<Reply> {
  const { address: _, ...source } = originOf(c, parts);
  parts.consent.countRequest(source);
  const said = await readJson(c, 'Clients are registered');
  if (!isRecord(said)) throw new OAuthError('invalid_client_metadata', 'The body is no JSON object.');
  const { redirect_uris: redirects, client_name: name = 'Application', grant_types: grants } = said;
  if (!Array.isArray(redirects) || redirects.length === 0 || !redirects.every((uri) => typeof uri === 'string'))
    throw new OAuthError('invalid_redirect_uri', 'The redirect_uris are a list of at least one.');
  const problem = redirects.map(invalidRedirect).find((message) => message !== undefined);
  if (problem !== undefined) throw new OAuthError('invalid_redirect_uri', problem);
  if (typeof name !== 'string') throw new OAuthError('invalid_client_metadata', 'The client_name is no text.');
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
