import type { Context } from 'hono';
import { type Client, type Consent, findClient, parseScope, POLL_SECONDS } from '../../keys/consent/index.ts';
import { sourceOf } from '../../keys/basics/index.ts';
import type { Principal } from '../../keys/authorization/index.ts';
import type { Exchange, TokenIdentifier } from '../../keys/exchange/index.ts';
import type { Catalog } from '../../keys/permissions/index.ts';
import { type Grants, requireFlow } from '../../keys/repository/index.ts';
import type { BearerCheck } from '../bearer-check.ts';
import { type ClientAddresses, HonoHead } from '../received.ts';
import type { FailureLog, RefusalLog } from '../refusal-log.ts';
import { readForm } from '../form.ts';
import { jsonReply, type Reply } from '../replies.ts';
import { type Issuer, OAUTH_PATHS } from './issuer.ts';
import { OAuthError, Parameters } from './oauth-error.ts';

/** What the endpoints for applications, and the pages for people, share. */
export interface ConsentParts {
  readonly consent: Consent;
  readonly exchange: Exchange;
  /** Knows whose tokens are trusted; undefined where nobody's are. */
  readonly tokens: TokenIdentifier | undefined;
  /** Counts a use of a key. */
  readonly countUse: (principal: Principal) => void;
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

/** The form of a public client, which proves nothing by a secret. @throws OAuthError; RequestRefused */
export async function applicationForm(c: Context): Promise<Parameters> {
  const form = new Parameters(await readForm(c, 'This is asked'));
  if (c.req.header('authorization') !== undefined || form.get('client_secret') !== undefined)
    throw new OAuthError('invalid_client', 'Clients have no secret here: send the client_id alone, in the form.', 401, {
      'WWW-Authenticate': 'Basic realm="svc-api"',
    });
  return form;
}
