import type { Context } from 'hono';
import type { Consent } from '../../keys/consent/consent.ts';
import type { Redemption } from '../../keys/consent/redeem.ts';
import { sourceOf } from '../../keys/networks.ts';
import type { Catalog } from '../../keys/permissions/catalog.ts';
import { type Client, findClient } from '../../keys/requests/clients.ts';
import { POLL_SECONDS } from '../../keys/consent/pace.ts';
import { type ConsentFlow, consentFlows, type Grants, requireFlow } from '../../keys/requests/consent-request.ts';
import { formatScope, parseScope } from '../../keys/requests/scope.ts';
import type { BearerCheck } from '../bearer-check.ts';
import { type ClientAddresses, HonoHead } from '../received.ts';
import type { FailureLog, RefusalLog } from '../refusal-log.ts';
import { readForm } from '../form.ts';
import { jsonReply, type Reply } from '../replies.ts';
import { DEVICE_GRANT, type Issuer, OAUTH_PATHS } from './issuer.ts';
import { OAuthError, Parameters } from './oauth-error.ts';

/** What the endpoints for applications, and the pages for people, share. */
export interface ConsentParts {
  readonly consent: Consent;
  readonly catalog: Catalog;
  /** Those that are registered. */
  readonly clients: readonly Client[];
  readonly issuer: Issuer;
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
  const client = clientIn(form, parts);
  const grants = grantsIn(form, parts.catalog);
  const wanted = { client, ...grants, keyExpiresIn: form.get('key_expires_in'), address };
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

/** Gives an application its key (RFC 6749, sections 4.1.4 and 5.1; RFC 8628, section 3.5). @throws OAuthError */
export async function giveKey(c: Context, parts: ConsentParts): Promise<Reply> {
  const flows = consentFlows(parts.catalog);
  if (flows.length === 0) requireFlow(parts.catalog, 'DEVICE');
  const form = await applicationForm(c);
  const redemption = redemptionIn(form, parts, flows);
  const { address } = originOf(c, parts);
  const redeemed = await parts.consent.redeem(redemption, address);
  if ('refused' in redeemed) {
    const { refused, reason } = redeemed;
    const isUsual = refused === 'authorization_pending' || refused === 'slow_down';
    if (!isUsual)
      parts.refusals.add('consent refused', { reason: refused, detail: reason, address }, new HonoHead(c).notes);
    throw new OAuthError(refused, MEANINGS[refused]);
  }
  const { key, apiKey } = redeemed;
  return jsonReply(
    {
      access_token: key,
      token_type: 'Bearer',
      ...(apiKey.expiresAt !== null && {
        expires_in: Math.max(0, Math.floor((apiKey.expiresAt - apiKey.createdAt) / 1000)),
      }),
      scope: formatScope(apiKey),
    },
    { Pragma: 'no-cache' },
  );
}

const MEANINGS = {
  invalid_grant: 'The code is not valid: it is unknown, was used, has ended, or is not for this client.',
  access_denied: 'The request was refused, or whoever agreed to it may no longer do so.',
  expired_token: 'The code has ended. Ask for a new one.',
  authorization_pending: 'Nobody has decided yet.',
  slow_down: 'The client asks too often: wait five seconds longer each time.',
} as const;

/** The client that a request names. @throws OAuthError invalid_client */
export function clientIn(given: Parameters, { clients }: Pick<ConsentParts, 'clients'>): Client {
  const client = findClient(clients, given.need('client_id'));
  if (!client) throw new OAuthError('invalid_client', 'There is no client with this client_id: register it first.');
  return client;
}

/** What a request asks for. @throws OAuthError invalid_scope */
export function grantsIn(given: Parameters, catalog: Catalog): Grants {
  const parsed = parseScope(given.get('scope') ?? '', catalog);
  if ('issue' in parsed) throw new OAuthError('invalid_scope', parsed.issue.message);
  return parsed.grants;
}

/** By what an application gets its key that asked in a way. */
const GRANTS: ReadonlyMap<string, ConsentFlow> = new Map([
  ['authorization_code', 'CODE'],
  [DEVICE_GRANT, 'DEVICE'],
]);

function redemptionIn(form: Parameters, parts: ConsentParts, flows: readonly ConsentFlow[]): Redemption {
  const grantType = form.need('grant_type');
  const { id: clientId } = clientIn(form, parts);
  const flow = GRANTS.get(grantType);
  if (flow === undefined || !flows.includes(flow)) {
    const grants = [...GRANTS].filter(([, each]) => flows.includes(each)).map(([grant]) => grant);
    throw new OAuthError('unsupported_grant_type', `The grant_type is ${grants.join(' or ')}.`);
  }
  if (flow === 'DEVICE') return { clientId, deviceCode: form.need('device_code') };
  const [code, redirectUri, verifier] = ['code', 'redirect_uri', 'code_verifier'].map((name) => form.need(name));
  return { clientId, code: code!, redirectUri: redirectUri!, verifier: verifier! };
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
