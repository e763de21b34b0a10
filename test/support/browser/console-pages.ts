import type { BrowserContext, Page } from 'playwright-core';
import type { NewKey } from '../../../src/keys/key/key-change.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createPrincipal } from '../keys.ts';
import { steadyRandomness } from '../random.ts';
import { query, type TestService } from '../server.ts';
import type { Look, Visit } from './visit.ts';

/** A service with the console and without randomness. */
export function startConsole(visit: Visit, options: Parameters<Visit['serve']>[0] = {}): Promise<TestService> {
  return visit.serve({ randomness: steadyRandomness(), ...options, app: { console: true, ...options.app } });
}

/** A key for signing in. The test fails if its secret leaks. */
export async function personWith({ keys }: TestService, visit: Visit, fields: Partial<NewKey> = {}) {
  const { secret, principal } = await createPrincipal(keys, { name: 'Ada', roles: ['ADMIN'], ...fields });
  return { key: visit.isSecret(secret), id: principal.apiKey.id, principal };
}

/** A choice on the grants form: an access level such as `Read`, or `Custom` for single actions. */
export const accessLevel = (page: Page, resource: string, level: string) =>
  page.getByRole('radiogroup', { name: resource, exact: true }).getByRole('radio', { name: level, exact: true });

/** Submits the sign-in form. */
export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

type Cookie = Parameters<BrowserContext['addCookies']>[0][number];

/** Exchanges a key for a session as the form does, but faster. @returns its cookie */
async function sessionFor(url: string, key: string): Promise<Cookie> {
  const response = await fetch(`${url}/console/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: url },
    body: new URLSearchParams({ key }),
  });
  const [pair = ''] = response.headers.getSetCookie()[0]!.split(';');
  const [name = '', value = ''] = pair.split('=');
  return { url, name, value, httpOnly: true, sameSite: 'Strict' };
}

/** A service, and a signed-in user on a page. @param path under `/console/` */
export async function signedIn(
  visit: Visit,
  path: string,
  {
    look = {},
    person = {},
    service,
  }: { look?: Look | BrowserContext; person?: Partial<NewKey>; service?: TestService } = {},
) {
  const test = service ?? (await startConsole(visit));
  const { key, id, principal } = await personWith(test, visit, person);
  const context = 'newPage' in look ? look : await visit.context(look);
  await context.addCookies([await sessionFor(test.url, key)]);
  const page = await visit.open(`${test.url}/console/${path}`, context);
  const open = (path: string) => page.goto(`${test.url}/console/${path}`);
  return { ...test, key, id, principal, page, open, context };
}

/** The keys of a small team, some of them in use. It is noon by the service's clock. */
export async function addTeamKeys({ keys, time, url }: TestService): Promise<Record<string, string>> {
  time.now = Date.UTC(2030, 0, 1, 11);
  const ids: Record<string, string> = {};
  for (const [name, { isUsed, ...fields }] of Object.entries(TEAM)) {
    time.now += 60_000;
    const { apiKey: key, key: secret } = await keys.create({ name, ...fields }, OPERATOR);
    ids[name] = key.id;
    time.now += 7 * 60_000;
    if (isUsed) await query(url, secret, '{ __typename }');
  }
  await keys.finishActivity();
  await keys.setEnabled(ids['Old importer']!, false, OPERATOR);
  time.now = Date.UTC(2030, 0, 1, 12);
  return ids;
}

const TEAM: Readonly<Record<string, Omit<NewKey, 'name'> & { isUsed?: boolean }>> = {
  'Visit of Bea': { roles: ['GUEST'], expiresIn: '30m', isUsed: true },
  'Nightly backup': {
    permissions: ['DISK:READ_ANY', 'ARRAY:READ_ANY', 'SHARE:READ_ANY', 'NOTIFICATIONS:CREATE_ANY'],
    description: 'Copies the shares at night',
    expiresIn: '90d',
    isUsed: true,
  },
  'Old importer': { permissions: ['DISK:READ_ANY'], expiresIn: '14d' },
  'CI deploy': { permissions: ['DOCKER:READ_ANY', 'DOCKER:UPDATE_ANY'], expiresIn: '30d', isUsed: true },
  'Wall display': { roles: ['VIEWER'], description: 'The screen in the hall', isUsed: true },
};
