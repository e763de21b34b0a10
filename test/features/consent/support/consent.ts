import { createHash, randomBytes } from 'node:crypto';
import type { Client } from '../../../../src/features/consent/clients.ts';
import { startTestService, type TestService } from '../../../support/server.ts';

/** The registered application in tests. */
export const APP: Client = {
  id: 'grafana-sync',
  name: 'Grafana sync',
  redirects: ['http://127.0.0.1/done', 'https://app.example.org/done', 'com.example.app:/done'],
};
/** Its redirect URI. */
export const CALLBACK = 'http://127.0.0.1:54321/done';

/** A service that knows APP. */
export function startConsentService(options: Parameters<typeof startTestService>[0] = {}): Promise<TestService> {
  return startTestService({ consent: 'both', ...options, app: { clients: [APP], ...options.app } });
}

/** A PKCE verifier and its challenge (RFC 7636). */
export function newPkce(): { verifier: string; challenge: string } {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

/** Posts a form, as a program or from one of our own pages. Redirects are not followed. */
export async function postForm(
  url: string,
  form: Record<string, string> | [string, string][],
  headers: Record<string, string> = {},
) {
  const isPage = /\/(device|oauth\/authorize)(\?|$)/.test(url);
  const response = await fetch(url, {
    method: 'POST',
    body: new URLSearchParams(form),
    headers: { ...(isPage && { origin: new URL(url).origin }), ...headers },
    redirect: 'manual',
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text };
}

/** The answer to an application that requests a device code or its key. */
export async function postJson(url: string, form: Record<string, string>, headers: Record<string, string> = {}) {
  const { text, ...reply } = await postForm(url, form, headers);
  return { ...reply, body: JSON.parse(text) as Record<string, unknown> };
}

/** Requests a device code. */
export async function askDevice(
  url: string,
  { scope = 'DOCKER:READ_ANY', ...more }: Record<string, string> = {},
): Promise<{ device_code: string; user_code: string }> {
  const { body } = await postJson(`${url}/oauth/device_authorization`, { client_id: APP.id, scope, ...more });
  return body as never;
}

/** Polls with a device code. */
export function pollDevice(url: string, deviceCode: string, clientId = APP.id) {
  const grant = 'urn:ietf:params:oauth:grant-type:device_code';
  return postJson(`${url}/oauth/token`, { grant_type: grant, device_code: deviceCode, client_id: clientId });
}

/** The authorization URL for a person. */
export function authorizeUrl(url: string, parameters: Record<string, string> = {}): string {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: APP.id,
    redirect_uri: CALLBACK,
    scope: 'DOCKER:READ_ANY role:GUEST',
    state: 'the state',
    code_challenge: newPkce().challenge,
    code_challenge_method: 'S256',
    ...parameters,
  });
  return `${url}/oauth/authorize?${query.toString()}`;
}

/** The form fields of a page as a browser sends them, without the key and the decision. */
export function fieldsIn(page: string): [string, string][] {
  const inputs = page.matchAll(/<input [^>]*>/g);
  return [...inputs].flatMap(([input]): [string, string][] => {
    const attribute = (name: string) => new RegExp(` ${name}="([^"]*)"`).exec(input)?.[1];
    const [name, value = ''] = [attribute('name'), attribute('value')];
    const isLeftOut = attribute('type') === 'checkbox' && !input.includes(' checked');
    return name === undefined || name === 'key' || isLeftOut ? [] : [[name, value]];
  });
}

/** Opens the page of a request, as a redirected browser. */
export async function openPage(address: string) {
  const response = await fetch(address, { redirect: 'manual' });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, fields: fieldsIn(text) };
}

/** Approves a request. @returns the address of the redirect */
export function agree(url: string, fields: [string, string][], key: string, headers: Record<string, string> = {}) {
  const path = fields.some(([name]) => name === 'page') ? '/oauth/authorize' : '/device';
  return postForm(url + path, [...fields, ['key', key], ['decision', 'approve']], headers);
}

/** Goes through the pages, and returns the application's code. */
export async function codeFor(url: string, key: string, parameters: Record<string, string> = {}): Promise<string> {
  const { fields } = await openPage(authorizeUrl(url, parameters));
  const { headers } = await agree(url, fields, key);
  return new URL(headers.get('location')!).searchParams.get('code')!;
}

/** Exchanges an authorization code for a key. */
export function exchange(url: string, code: string, verifier: string, more: Record<string, string> = {}) {
  return postJson(`${url}/oauth/token`, {
    grant_type: 'authorization_code',
    client_id: APP.id,
    code,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
    ...more,
  });
}
