import type { Page } from 'playwright-core';
import { APP, askDevice, authorizeUrl, exchange, newPkce, pollDevice } from '../../features/consent/support/consent.ts';
import { createPrincipal } from '../keys.ts';
import { steadyRandomness } from '../random.ts';
import type { Visit } from './visit.ts';

/** A service with an application, and a key whose owner can approve its requests. */
async function start(visit: Visit) {
  const service = await visit.serve({ consent: 'both', app: { clients: [APP] }, randomness: steadyRandomness() });
  const owner = await createPrincipal(service.keys, { name: 'Owner', roles: ['ADMIN'] });
  return { ...service, key: visit.isSecret(owner.secret) };
}

/** The approval page for a code, opened by the link that the application shows. */
export async function askedByCode(
  visit: Visit,
  look: Parameters<Visit['open']>[1] = {},
  scope = 'DOCKER:READ_ANY role:GUEST',
) {
  const service = await start(visit);
  const asked = await askDevice(service.url, { scope, key_expires_in: '30d' });
  const page = await visit.open(`${service.url}/device?user_code=${asked.user_code}`, look);
  const granted = async () => {
    const { body } = await pollDevice(service.url, asked.device_code);
    if (typeof body['access_token'] === 'string') visit.isSecret(body['access_token']);
    return body['scope'] ?? body['error'];
  };
  return { ...service, ...asked, page, granted };
}

/** The approval page, reached by a redirect from an application on another site. */
export async function sentByApplication(visit: Visit, look: Parameters<Visit['open']>[1] = {}) {
  const service = await start(visit);
  const site = await visit.site('<!doctype html><html lang="en"><title>Grafana sync</title><h1>Done</h1></html>');
  const { verifier, challenge } = newPkce();
  const redirect_uri = `${site.url}/done`;
  const page = await visit.open(authorizeUrl(service.url, { redirect_uri, code_challenge: challenge }), look);
  const granted = async () => {
    const code = new URL(page.url()).searchParams.get('code')!;
    const { body } = await exchange(service.url, code, verifier, { redirect_uri });
    visit.isSecret(body['access_token'] as string);
    return body['scope'];
  };
  return { ...service, site, page, granted };
}

export const button = (page: Page, name: 'Approve' | 'Deny' | 'Continue') => page.getByRole('button', { name });
export const ownKey = (page: Page) => page.getByLabel('Your own API key');
