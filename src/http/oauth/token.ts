import type { Context } from 'hono';
import type { Polled, Redemption } from '../../features/consent/index.ts';
import { formatList } from '../../keys/basics/index.ts';
import type { NewSecret } from '../../keys/changes/index.ts';
import { formatScope } from '../../keys/permissions/index.ts';
import { type ConsentFlow, consentFlows, requireFlow } from '../../keys/repository/index.ts';
import { HonoHead } from '../received.ts';
import { jsonReply, type Reply } from '../replies.ts';
import { applicationForm, audienceIn, type ConsentParts, originOf } from './endpoints.ts';
import { exchangeAssertion, exchangeToken } from './exchange.ts';
import { DEVICE_GRANT, EXCHANGE_GRANT, JWT_GRANT } from './issuer.ts';
import { OAuthError, type Parameters } from './oauth-error.ts';

/** A key that is given, and when it is, in milliseconds since 1970, where that is later than its secret. */
type GivenKey = NewSecret & { readonly more?: object; readonly at?: number };

/** A way to get a key at the token endpoint. */
interface GrantType {
  /** The way in which an application has asked before; undefined for who shows something else than a code. */
  readonly flow?: ConsentFlow;
  /** Whether it takes tokens of issuers that are trusted. */
  readonly needsTokens?: boolean;
  /** Whether it is for applications that replace the secrets of their keys. */
  readonly needsRefreshing?: boolean;
  give(c: Context, form: Parameters, parts: ConsentParts): Promise<GivenKey>;
}

/** What the token endpoint gives keys for, by `grant_type`. */
const GRANT_TYPES: Readonly<Record<string, GrantType>> = {
  authorization_code: {
    flow: 'CODE',
    give: (c, form, parts) => {
      const common = { clientId: parts.clients.idIn(form), audience: audienceIn(form) };
      const [code, redirectUri, verifier] = ['code', 'redirect_uri', 'code_verifier'].map((name) => form.need(name));
      return redeem(c, { ...common, code: code!, redirectUri: redirectUri!, verifier: verifier! }, parts);
    },
  },
  [DEVICE_GRANT]: {
    flow: 'DEVICE',
    give: (c, form, parts) => {
      const common = { clientId: parts.clients.idIn(form), audience: audienceIn(form) };
      return redeem(c, { ...common, deviceCode: form.need('device_code') }, parts);
    },
  },
  refresh_token: {
    needsRefreshing: true,
    give: (c, form, parts) => {
      const refreshToken = form.need('refresh_token');
      const request = { clientId: parts.clients.idIn(form), refreshToken, audience: audienceIn(form) };
      return unlessRefused(c, parts, (address) => parts.consent.refresh(request, address, parts.refresh.leeway));
    },
  },
  [EXCHANGE_GRANT]: { give: exchangeToken },
  [JWT_GRANT]: { needsTokens: true, give: exchangeAssertion },
};

/** Those that are offered here, by the ways in which applications may ask. */
export function grantTypesOf({
  catalog,
  tokens,
  clients,
}: Pick<ConsentParts, 'catalog' | 'tokens' | 'clients'>): string[] {
  const flows = consentFlows(catalog);
  const isOffered = ({ flow, needsTokens, needsRefreshing }: GrantType) =>
    (!flow || flows.includes(flow)) && (!needsTokens || tokens) && (!needsRefreshing || clients.mayRefresh);
  return Object.keys(GRANT_TYPES).filter((name) => isOffered(GRANT_TYPES[name]!));
}

/** Gives somebody a key (RFC 6749, section 5.1). @throws OAuthError */
export async function giveKey(c: Context, parts: ConsentParts): Promise<Reply> {
  const form = await applicationForm(c);
  const name = form.need('grant_type');
  const offered = grantTypesOf(parts);
  const grantType = offered.includes(name) ? GRANT_TYPES[name] : undefined;
  if (!grantType) {
    if (name in GRANT_TYPES && consentFlows(parts.catalog).length === 0) requireFlow(parts.catalog, 'DEVICE');
    throw new OAuthError('unsupported_grant_type', `The grant_type is ${formatList(offered, 'or')}.`);
  }
  const { key, apiKey, more, at } = await grantType.give(c, form, parts);
  const { expiresAt, createdAt } = apiKey;
  const from = at ?? createdAt;
  return jsonReply(
    {
      access_token: key,
      ...more,
      token_type: 'Bearer',
      ...(expiresAt !== null && { expires_in: Math.max(0, Math.floor((expiresAt - from) / 1000)) }),
      scope: formatScope(apiKey),
    },
    { Pragma: 'no-cache' },
  );
}

/** Gives an application its key (RFC 6749, section 4.1.4; RFC 8628, section 3.5). @throws OAuthError */
function redeem(c: Context, redemption: Redemption, parts: ConsentParts): Promise<GivenKey> {
  return unlessRefused(c, parts, (address) => parts.consent.redeem(redemption, address, parts.refresh.lifetime));
}

async function unlessRefused(
  c: Context,
  parts: ConsentParts,
  work: (address: string | undefined) => Promise<Polled>,
): Promise<GivenKey> {
  const { address } = originOf(c, parts);
  const given = await work(address);
  if (!('refused' in given)) {
    const { refreshToken, ...key } = given;
    return { ...key, more: refreshToken === undefined ? {} : { refresh_token: refreshToken } };
  }
  const { refused, reason } = given;
  const isUsual = refused === 'authorization_pending' || refused === 'slow_down';
  if (!isUsual)
    parts.refusals.add('consent refused', { reason: refused, detail: reason, address }, new HonoHead(c).notes);
  throw new OAuthError(refused, MEANINGS[refused]);
}

const MEANINGS = {
  invalid_target: 'The resource is not the one that the key is for.',
  invalid_grant: 'The code or token is not valid: it is unknown, was used, has ended, or is not for this client.',
  access_denied: 'The request was refused, or the person who approved it may no longer do so.',
  expired_token: 'The code has ended. Ask for a new one.',
  authorization_pending: 'Nobody has decided yet.',
  slow_down: 'The client asks too often: wait five seconds longer each time.',
} as const;
