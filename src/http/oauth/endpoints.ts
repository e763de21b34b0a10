import type { Context } from 'hono';
import {
  type Consent,
  formatScope,
  type NewConsentRequest,
  parseScope,
  POLL_SECONDS,
  type Polled,
} from '../../keys/consent/index.ts';
import { formatList, sourceOf } from '../../keys/basics/index.ts';
import { readAudience } from '../../keys/key/index.ts';
import type { Catalog } from '../../keys/permissions/index.ts';
import { type ConsentFlow, consentFlows, requireFlow } from '../../keys/repository/index.ts';
import type { BearerCheck, Discovery } from '../bearer-check.ts';
import { type ClientAddresses, HonoHead, requestTo, type RequestTo } from '../received.ts';
import type { FailureLog, RefusalLog } from '../refusal-log.ts';
import { readForm } from '../form.ts';
import { jsonReply, type Reply } from '../replies.ts';
import { DEVICE_GRANT, type Issuer, OAUTH_PATHS } from './issuer.ts';
import type { Clients } from './clients.ts';
import { OAuthError, Parameters } from './oauth-error.ts';

/** Where clients get keys for what is guarded for proxies. */
export interface GuardedDiscovery {
  isOwn(to: RequestTo): boolean;
  find(to: RequestTo): Discovery | undefined;
  answer(to: RequestTo): Reply | undefined;
}

/** What the endpoints for applications, and the pages for people, share. */
export interface ConsentParts {
  readonly consent: Consent;
  readonly catalog: Catalog;
  readonly clients: Clients;
  readonly issuer: Issuer;
  readonly guarded?: GuardedDiscovery | undefined;
  readonly addresses: ClientAddresses;
  /** Takes keys that people show in forms, wherever programs put theirs. */
  readonly check: BearerCheck;
  readonly refusals: RefusalLog;
  readonly failures: FailureLog;
}

/** Where a request comes from, and as what it is counted. */
export function originOf(c: Context, { addresses }: Pick<ConsentParts, 'addresses'>) {
  const { address } = addresses.of(new HonoHead(c));
  return { address, ...sourceOf(address) };
}

/** Answers an application that shows a code to a person (RFC 8628, section 3.2). @throws OAuthError */
export async function authorizeDevice(c: Context, parts: ConsentParts): Promise<Reply> {
  requireFlow(parts.catalog, 'DEVICE');
  const { address, ...source } = originOf(c, parts);
  parts.consent.countRequest(source);
  const form = await applicationForm(c);
  const client = await parts.clients.find(form);
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

/** By what an application gets a key, and how. */
interface Grant {
  isOn(parts: ConsentParts): boolean;
  give(form: Parameters, parts: ConsentParts, address: string | undefined): Promise<Polled>;
}

const asks =
  (read: (form: Parameters) => { deviceCode: string } | { code: string; redirectUri: string; verifier: string }) =>
  (form: Parameters, { consent, clients }: ConsentParts, address: string | undefined): Promise<Polled> =>
    consent.redeem({ clientId: clients.idIn(form), ...read(form), audience: audienceIn(form) }, address);

const isAsked = (flow: ConsentFlow) => (parts: ConsentParts) => consentFlows(parts.catalog).includes(flow);

const GRANTS: ReadonlyMap<string, Grant> = new Map([
  [
    'authorization_code',
    {
      isOn: isAsked('CODE'),
      give: asks((form) => {
        const [code, redirectUri, verifier] = ['code', 'redirect_uri', 'code_verifier'].map((name) => form.need(name));
        return { code: code!, redirectUri: redirectUri!, verifier: verifier! };
      }),
    },
  ],
  [DEVICE_GRANT, { isOn: isAsked('DEVICE'), give: asks((form) => ({ deviceCode: form.need('device_code') })) }],
  [
    'refresh_token',
    {
      isOn: ({ clients }) => clients.mayRefresh,
      give: (form, { consent, clients }, address) => {
        const refreshToken = form.need('refresh_token');
        return consent.refresh({ clientId: clients.idIn(form), refreshToken, audience: audienceIn(form) }, address);
      },
    },
  ],
]);

/** The grants by which applications get keys, by their names. */
export function grantTypes(parts: ConsentParts): string[] {
  return [...GRANTS].filter(([, grant]) => grant.isOn(parts)).map(([name]) => name);
}

/**
 * Gives an application its key, or a new secret for it (RFC 6749, sections 4.1.4, 5.1 and 6; RFC 8628, section 3.5).
 * @throws OAuthError
 */
export async function giveKey(c: Context, parts: ConsentParts): Promise<Reply> {
  if (consentFlows(parts.catalog).length === 0) requireFlow(parts.catalog, 'DEVICE');
  const form = await applicationForm(c);
  const grant = GRANTS.get(form.need('grant_type'));
  if (!grant?.isOn(parts)) {
    parts.clients.idIn(form);
    throw new OAuthError('unsupported_grant_type', `The grant_type is ${formatList(grantTypes(parts), 'or')}.`);
  }
  const { address } = originOf(c, parts);
  const given = await grant.give(form, parts, address);
  if ('refused' in given) {
    const { refused, reason } = given;
    const isUsual = refused === 'authorization_pending' || refused === 'slow_down';
    if (!isUsual)
      parts.refusals.add('consent refused', { reason: refused, detail: reason, address }, new HonoHead(c).notes);
    throw new OAuthError(refused, MEANINGS[refused]);
  }
  const { key, apiKey, refreshToken } = given;
  const from = apiKey.rotation?.startedAt ?? apiKey.createdAt;
  return jsonReply(
    {
      access_token: key,
      token_type: 'Bearer',
      ...(apiKey.expiresAt !== null && { expires_in: Math.max(0, Math.floor((apiKey.expiresAt - from) / 1000)) }),
      ...(refreshToken !== undefined && { refresh_token: refreshToken }),
      scope: formatScope(apiKey),
    },
    { Pragma: 'no-cache' },
  );
}

const MEANINGS = {
  invalid_target: 'The resource is not the one that the key is for.',
  invalid_grant: 'The code is not valid: it is unknown, was used, has ended, or is not for this client.',
  access_denied: 'The request was refused, or whoever agreed to it may no longer do so.',
  expired_token: 'The code has ended. Ask for a new one.',
  authorization_pending: 'Nobody has decided yet.',
  slow_down: 'The client asks too often: wait five seconds longer each time.',
} as const;

/**
 * What a request asks for. Without a scope, that is what it takes to reach the resource that it names, if that is
 * guarded by the same configuration.
 * @throws OAuthError invalid_scope, invalid_target
 */
export function askedIn(
  given: Parameters,
  { catalog, guarded }: Pick<ConsentParts, 'catalog' | 'guarded'>,
): Pick<NewConsentRequest, 'roles' | 'permissions' | 'replaces' | 'audience'> {
  const audience = audienceIn(given);
  const scope = given.get('scope') ?? (audience === undefined ? '' : leastScope(audience, guarded));
  const parsed = parseScope(scope, catalog);
  if ('issue' in parsed) throw new OAuthError('invalid_scope', parsed.issue.message);
  const { grants, replaces } = parsed;
  return { ...grants, replaces, audience };
}

function leastScope(audience: string, guarded: ConsentParts['guarded']): string {
  const to = requestTo(audience);
  const found = guarded?.find({ ...to, method: 'POST' }) ?? guarded?.find(to);
  return found?.scope.join(' ') ?? '';
}

/** What a key is to be for alone (RFC 8707, section 2). @throws OAuthError invalid_target */
function audienceIn(given: Parameters): string | undefined {
  const resource = given.get('resource');
  const audience = resource === undefined ? undefined : readAudience(resource);
  if (resource === undefined || audience !== undefined) return audience;
  throw new OAuthError('invalid_target', 'The resource is not an address of http or https without a query.');
}

/** The form of a public client, which proves nothing by a secret. @throws OAuthError; RequestRefused */
export async function applicationForm(c: Context): Promise<Parameters> {
  const form = new Parameters(await readForm(c, 'This is asked'));
  if (c.req.header('authorization') !== undefined || form.get('client_secret') !== undefined)
    throw new OAuthError('invalid_client', 'Clients have no secret here: send the client_id alone, in the form.', 401, {
      'WWW-Authenticate': 'Basic realm="svc-api"',
    });
  return form;
}
