import type { Context } from 'hono';
import type { FeatureContext } from '../../feature.ts';
import { admitKey, HonoHead, originOf } from '../../http/index.ts';
import type { Principal } from '../../keys/authorization/index.ts';
import { formatList, isKeysError } from '../../keys/basics/index.ts';
import type { NewSecret } from '../../keys/changes/index.ts';
import { isFor } from '../../keys/key/index.ts';
import { OWN_CLIENT } from '../consent/clients.ts';
import { audienceIn, grantsIn } from '../consent/oauth/endpoints.ts';
import { oauthOf } from '../consent/oauth/oauth.ts';
import { OAuthError, type Parameters } from '../consent/oauth/oauth-error.ts';
import type { ConsentParts } from '../consent/oauth/parts.ts';
import { Exchange, type WantedKey } from './exchange.ts';
import { Federation } from './federation.ts';
import { type TokenIdentifier, TokenRefused } from './identified-token.ts';

const JWT_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';

/** Parts of the endpoints for applications, and further ones for exchanges. */
interface ExchangeParts extends ConsentParts {
  readonly exchange: Exchange;
  /** Identifies tokens of trusted issuers; undefined if no issuer is trusted. */
  readonly tokens: TokenIdentifier | undefined;
  /** Counts a use of a key. */
  readonly countUse: (principal: Principal) => void;
}

/** Adds the exchange of keys and tokens to the token endpoint. */
export function addExchange(context: FeatureContext): void {
  const { keys, config } = context;
  const exchange = keys.feature(Exchange);
  const { federation: rules = [] } = config ?? {};
  const tokens =
    rules.length === 0 ? undefined : new Federation({ rules, keys: exchange.issuerKeys, clock: keys.clock });
  const countUse = (principal: Principal) => void keys.authenticator.countUse({ principal });
  const { grantTypes } = oauthOf(context);
  const more = { exchange, tokens, countUse };
  grantTypes.set(EXCHANGE_GRANT, {
    isOffered: true,
    give: (c, form, parts) => exchangeToken(c, form, { ...parts, ...more }),
  });
  grantTypes.set(JWT_GRANT, {
    isOffered: tokens !== undefined,
    give: (c, form, parts) => exchangeAssertion(c, form, { ...parts, ...more }),
  });
}

const TYPE = 'urn:ietf:params:oauth:token-type:';
const ACCESS_TOKEN = `${TYPE}access_token`;
/** The types of tokens that other issuers sign. */
const SIGNED = [`${TYPE}jwt`, `${TYPE}id_token`];

/**
 * Exchanges a credential for a key (RFC 8693): the holder of a key gets a restricted, short-lived child key for someone
 * who does a part of their work; the holder of a token from a trusted issuer gets the key that a rule grants.
 * @throws OAuthError
 */
async function exchangeToken(
  c: Context,
  form: Parameters,
  parts: ExchangeParts,
): Promise<NewSecret & { readonly more: object }> {
  const subject = form.need('subject_token');
  const type = form.need('subject_token_type');
  const types = [ACCESS_TOKEN, ...(parts.tokens ? SIGNED : [])];
  if (!types.includes(type))
    throw new OAuthError('invalid_request', `subject_token_type must be ${formatList(types, 'or')}.`);
  if ((form.get('requested_token_type') ?? ACCESS_TOKEN) !== ACCESS_TOKEN)
    throw new OAuthError('invalid_request', `requested_token_type must be ${ACCESS_TOKEN}.`);
  if (form.get('actor_token') !== undefined)
    throw new OAuthError('invalid_request', 'actor_token is not supported: the audit log names the key of the caller.');
  const wanted = wantedIn(c, form, parts);
  const given =
    type === ACCESS_TOKEN
      ? await delegate(c, subject, wanted, parts)
      : await federate(c, subject, wanted, { ...parts, tokens: parts.tokens!, refusal: 'invalid_request' });
  return { ...given, more: { issued_token_type: ACCESS_TOKEN } };
}

/** The same for a token of an issuer that is trusted, as RFC 7523, section 2.1, has it. @throws OAuthError */
function exchangeAssertion(c: Context, form: Parameters, parts: ExchangeParts): Promise<NewSecret> {
  const token = form.need('assertion');
  const wanted = wantedIn(c, form, parts);
  return federate(c, token, wanted, { ...parts, tokens: parts.tokens!, refusal: 'invalid_grant' });
}

async function delegate(c: Context, key: string, wanted: WantedKey, parts: ExchangeParts): Promise<NewSecret> {
  const admission = await admitKey(c, key, parts.check, true);
  if (!('refusal' in admission)) {
    const { principal } = admission;
    const { audience } = wanted;
    const isWithin = principal.restrictions?.audiences.every((own) => audience === undefined || isFor(own, audience));
    if (isWithin === false) throw new OAuthError('invalid_target', 'The resource is not one that the key is for.');
    return asOAuth(parts.exchange.delegate(principal, wanted));
  }
  const { status, message, headers } = admission.refusal;
  if (status === 429 || status === 503) throw new OAuthError('temporarily_unavailable', message, status, headers);
  throw new OAuthError('invalid_request', message);
}

async function federate(
  c: Context,
  token: string,
  wanted: WantedKey,
  parts: ExchangeParts & { tokens: TokenIdentifier; refusal: 'invalid_request' | 'invalid_grant' },
): Promise<NewSecret> {
  const { address } = originOf(c, parts);
  try {
    const given = await asOAuth(
      parts.exchange.federate(await parts.tokens.identify(token, wanted.clientId), wanted, address),
    );
    parts.countUse(given.principal);
    return given;
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error;
    const detail = error.cause instanceof Error ? { detail: error.cause.message } : {};
    parts.refusals.add('token refused', { reason: error.message, ...detail, address }, new HonoHead(c).notes);
    if (error.reason !== 'unavailable') throw new OAuthError(parts.refusal, error.message);
    throw new OAuthError('temporarily_unavailable', error.message, 503, { 'Retry-After': '10' });
  }
}

/** Reads the requested key. @throws OAuthError */
function wantedIn(c: Context, form: Parameters, parts: ExchangeParts): WantedKey {
  const own = parts.issuer.of(c);
  const targets = new Set([...form.all('resource'), ...form.all('audience')].filter((target) => target !== ''));
  const [target] = targets;
  const audience = target === undefined || target === own ? target : audienceIn(form);
  if (targets.size > 1 || (target !== undefined && audience === undefined))
    throw new OAuthError('invalid_target', `Pass the address of one resource, such as ${own} for this service.`);
  return {
    name: form.get('name'),
    grants: form.get('scope') === undefined ? undefined : grantsIn(form, parts.catalog),
    expiresIn: form.get('expires_in'),
    audience,
    clientId: form.get('client_id') === undefined ? OWN_CLIENT.id : parts.clients.idIn(form),
  };
}

/** Turns refusals by the rules for keys into OAuth errors. @throws OAuthError; KeysError STORE_… */
async function asOAuth<Result>(given: Promise<Result>): Promise<Result> {
  try {
    return await given;
  } catch (error) {
    if (!isKeysError(error) || error.code.startsWith('STORE_') || error.code === 'TOO_MANY_REQUESTS') throw error;
    throw new OAuthError(error.code === 'FORBIDDEN' ? 'invalid_scope' : 'invalid_request', error.message);
  }
}
