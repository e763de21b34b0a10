import type { Context } from 'hono';
import { printable } from '../../../keys/basics/index.ts';
import type { ConsentRedirect } from '../consent-request.ts';
import type { NewConsentRequest } from '../ask.ts';
import { type Client, hasRedirect } from '../clients.ts';
import { isChallenge } from '../pkce.ts';
import { askedIn, clientIn } from './endpoints.ts';
import { OAuthError, type Parameters } from './oauth-error.ts';
import type { ConsentParts } from './parts.ts';

const MAX_STATE_LENGTH = 2000;
/** In characters. */
const MAX_SHOWN = 200;

/** The verified redirect URI of a request that may have other problems. */
export type ReturnAddress = Pick<ConsentRedirect, 'uri' | 'state'>;

/**
 * Finds where to redirect the person. Errors are only sent there once it is known to belong to the application (RFC
 * 9700, section 4.11).
 * @throws OAuthError to show to the person
 */
export async function returnAddressIn(
  c: Context,
  given: Parameters,
  parts: ConsentParts,
): Promise<{ client: Client; back: ReturnAddress }> {
  const client = await clientIn(c, given, parts);
  const uri = given.need('redirect_uri');
  if (!hasRedirect(client, uri))
    throw new OAuthError(
      'invalid_request',
      `The redirect_uri ${printable(uri, MAX_SHOWN)} is not registered for "${client.name}".`,
    );
  const state = given.get('state') ?? null;
  if (state !== null && state.length > MAX_STATE_LENGTH)
    throw new OAuthError('invalid_request', `The state is longer than ${MAX_STATE_LENGTH} characters.`);
  return { client, back: { uri, state } };
}

/** The rest of an authorization request (RFC 6749, section 4.1.1; RFC 7636, section 4.3). @throws OAuthError */
export function authorizationIn(
  given: Parameters,
  { client, back }: { client: Client; back: ReturnAddress },
  parts: ConsentParts,
): Omit<NewConsentRequest, 'address'> {
  if (given.need('response_type') !== 'code')
    throw new OAuthError('unsupported_response_type', 'response_type must be "code".');
  if ((given.get('response_mode') ?? 'query') !== 'query')
    throw new OAuthError('invalid_request', 'response_mode must be "query".');
  if (given.need('code_challenge_method') !== 'S256')
    throw new OAuthError('invalid_request', 'code_challenge_method must be "S256".');
  const challenge = given.need('code_challenge');
  if (!isChallenge(challenge))
    throw new OAuthError('invalid_request', 'code_challenge must be a SHA-256 in base64url.');
  const keyExpiresIn = given.get('key_expires_in');
  return { client, ...askedIn(given, parts), keyExpiresIn, redirect: { ...back, challenge } };
}
