import type { Context } from 'hono';
import { HonoHead, jsonReply, originOf, type Reply } from '../../../http/index.ts';
import { formatList } from '../../../keys/basics/index.ts';
import { formatScope } from '../../../keys/permissions/index.ts';
import { consentFlows, requireFlow } from '../consent-flow.ts';
import type { Polled } from '../consent.ts';
import type { Redemption } from '../redeem.ts';
import { applicationForm, audienceIn } from './endpoints.ts';
import { OAuthError } from './oauth-error.ts';
import type { ConsentParts, GivenKey, GrantType } from './parts.ts';
import { DEVICE_GRANT } from './paths.ts';

/** The ways for applications that have asked a person. */
export function ownGrantTypes({ catalog, clients }: Pick<ConsentParts, 'catalog' | 'clients'>): Map<string, GrantType> {
  const flows = consentFlows(catalog);
  const ways: Readonly<Record<string, GrantType>> = {
    authorization_code: {
      isOffered: flows.includes('CODE'),
      give: (c, form, parts) => {
        const common = { clientId: parts.clients.idIn(form), audience: audienceIn(form) };
        const [code, redirectUri, verifier] = ['code', 'redirect_uri', 'code_verifier'].map((name) => form.need(name));
        return redeem(c, { ...common, code: code!, redirectUri: redirectUri!, verifier: verifier! }, parts);
      },
    },
    [DEVICE_GRANT]: {
      isOffered: flows.includes('DEVICE'),
      give: (c, form, parts) => {
        const common = { clientId: parts.clients.idIn(form), audience: audienceIn(form) };
        return redeem(c, { ...common, deviceCode: form.need('device_code') }, parts);
      },
    },
    refresh_token: {
      isOffered: clients.mayRefresh,
      give: (c, form, parts) => {
        const refreshToken = form.need('refresh_token');
        const request = { clientId: parts.clients.idIn(form), refreshToken, audience: audienceIn(form) };
        return unlessRefused(c, parts, (address) => parts.consent.refresh(request, address, parts.refresh.leeway));
      },
    },
  };
  return new Map(Object.entries(ways));
}

/** The names of those that are offered. */
export function grantTypesOf({ grantTypes }: Pick<ConsentParts, 'grantTypes'>): string[] {
  return [...grantTypes].filter(([, { isOffered }]) => isOffered).map(([name]) => name);
}

/** Issues a key (RFC 6749, section 5.1). @throws OAuthError */
export async function giveKey(c: Context, parts: ConsentParts): Promise<Reply> {
  const form = await applicationForm(c);
  const name = form.need('grant_type');
  const offered = grantTypesOf(parts);
  const grantType = parts.grantTypes.get(name);
  if (!grantType?.isOffered) {
    if (grantType && consentFlows(parts.catalog).length === 0) requireFlow(parts.catalog, 'DEVICE');
    throw new OAuthError('unsupported_grant_type', `grant_type must be ${formatList(offered, 'or')}.`);
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
  invalid_grant: 'The code or token is not valid: it is unknown, used, expired, or belongs to another client.',
  access_denied: 'The request was denied, or the person who approved it is no longer allowed to.',
  expired_token: 'The code has expired. Request a new one.',
  authorization_pending: 'The request has not been approved yet.',
  slow_down: 'Polling too often: wait five seconds longer each time.',
} as const;
