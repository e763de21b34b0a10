import type { Context } from 'hono';
import { isKeysError } from '../../keys/basics/index.ts';
import type { NewSecret } from '../../keys/changes/index.ts';
import { OWN_CLIENT } from '../../keys/consent/index.ts';
import type { WantedKey } from '../../keys/exchange/index.ts';
import { admitKey } from '../form.ts';
import { clientIn, type ConsentParts, grantsIn } from './endpoints.ts';
import { OAuthError, type Parameters } from './oauth-error.ts';

const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

/**
 * Gives the holder of a key a narrower one that ends, for somebody who does a part of their work (RFC 8693): a child
 * key, which ends with theirs.
 * @throws OAuthError
 */
export async function exchangeToken(
  c: Context,
  form: Parameters,
  parts: ConsentParts,
): Promise<NewSecret & { readonly more: object }> {
  const subject = form.need('subject_token');
  const type = form.need('subject_token_type');
  if (type !== ACCESS_TOKEN) throw new OAuthError('invalid_request', `The subject_token_type is ${ACCESS_TOKEN}.`);
  if ((form.get('requested_token_type') ?? ACCESS_TOKEN) !== ACCESS_TOKEN)
    throw new OAuthError('invalid_request', `The requested_token_type is ${ACCESS_TOKEN}.`);
  if (form.get('actor_token') !== undefined)
    throw new OAuthError('invalid_request', 'An actor_token is not taken: the audit log names the key that asks.');
  const wanted = wantedIn(c, form, parts);
  const admission = await admitKey(c, subject, parts.check);
  if ('refusal' in admission) {
    const { status, message, headers } = admission.refusal;
    if (status === 429 || status === 503) throw new OAuthError('temporarily_unavailable', message, status, headers);
    throw new OAuthError('invalid_request', message);
  }
  const given = await asOAuth(parts.exchange.delegate(admission.principal, wanted));
  return { ...given, more: { issued_token_type: ACCESS_TOKEN } };
}

/** What is asked for of a key. @throws OAuthError */
function wantedIn(c: Context, form: Parameters, parts: ConsentParts): WantedKey {
  const own = parts.issuer.of(c);
  const other = [...form.all('resource'), ...form.all('audience')].find((target) => target !== '' && target !== own);
  if (other !== undefined) throw new OAuthError('invalid_target', `Keys are for this service alone, which is ${own}.`);
  return {
    name: form.get('name'),
    grants: form.get('scope') === undefined ? undefined : grantsIn(form, parts.catalog),
    expiresIn: form.get('expires_in'),
    clientId: form.get('client_id') === undefined ? OWN_CLIENT.id : clientIn(form, parts).id,
  };
}

/** What the rules for keys refuse, in the terms of OAuth. @throws OAuthError; KeysError STORE_… */
async function asOAuth<Result>(given: Promise<Result>): Promise<Result> {
  try {
    return await given;
  } catch (error) {
    if (!isKeysError(error) || error.code.startsWith('STORE_') || error.code === 'TOO_MANY_REQUESTS') throw error;
    throw new OAuthError(error.code === 'FORBIDDEN' ? 'invalid_scope' : 'invalid_request', error.message);
  }
}
