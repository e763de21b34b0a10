import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { defaultConfig } from '../../src/config/default-config.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { inBrowser } from '../support/browser.ts';
import { expectAccessible } from '../support/browser/accessible.ts';
import { button } from '../support/browser/consent-pages.ts';
import { Keyboard } from '../support/browser/keyboard.ts';
import { isHeaded } from '../support/browser/page.ts';
import type { Visit } from '../support/browser/visit.ts';
import { APP, askDevice, pollDevice } from '../features/consent/support/consent.ts';
import { CLIENT, startProvider, type TestProvider } from '../support/provider.ts';
import { tempFolder } from '../support/temp.ts';

const GRANT = { admins: ['ADMIN'], '*': ['VIEWER'] } as const;
const ADA = { sub: 'ada', preferred_username: 'ada@example.org', groups: ['admins'] };

/** A service whose people sign in at a provider on another site. */
async function withProvider(visit: Visit) {
  const provider = await startProvider({ host: '127.0.0.2' });
  visit.started(provider.issuer, () => provider.stop());
  provider.accounts.set(ADA.sub, ADA);
  const secretFile = join(tempFolder(), 'client.secret');
  writeFileSync(secretFile, CLIENT.secret, { mode: 0o600 });
  const by = { issuer: provider.issuer, clientId: CLIENT.id, secretFile, groups: 'groups' };
  const config = { ...defaultConfig(), clients: [APP], people: { by, grant: GRANT } };
  const service = await visit.serve({ consent: 'both', app: { console: true, config } });
  provider.register(`${service.url}/console/sign-in/callback`);
  return { provider, ...service };
}

const signInWith = (page: Page, { issuer }: TestProvider) =>
  page.getByRole('link', { name: `Sign in with ${new URL(issuer).host}` });

async function logIn(page: Page): Promise<void> {
  await isHeaded(page, 'Provider');
  await page.getByLabel('User').fill(ADA.sub);
  await page.getByRole('button', { name: 'Log in' }).click();
}

describe('people who have no key, in a browser', () => {
  it(
    'sign in at their provider, come back to where they wanted to go, and sign out',
    inBrowser(async (visit) => {
      const { provider, url } = await withProvider(visit);
      const page = await visit.open(`${url}/console/keys?search=ada`);
      await isHeaded(page, 'Sign in to svc-api');
      await expectAccessible(page);
      await signInWith(page, provider).click();
      await logIn(page);
      await isHeaded(page, 'Keys');
      assert.equal(page.url(), `${url}/console/keys?search=ada`);
      await expectAccessible(page);
      assert.ok((await page.getByRole('main').innerText()).includes('ada example org'));
      const [cookie, ...others] = (await page.context().cookies(url)).filter(({ name }) => name.startsWith('svc_api'));
      assert.deepEqual([cookie!.sameSite, cookie!.httpOnly, others], ['Strict', true, []]);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await isHeaded(page, 'Sign in to svc-api');
      await page.goto(`${url}/console/keys`);
      await isHeaded(page, 'Sign in to svc-api');
    }),
  );

  it(
    'sign in by the keyboard, without scripts, in the dark on a telephone',
    inBrowser(async (visit) => {
      const { provider, url } = await withProvider(visit);
      for (const look of [{ javaScript: false }, { width: 360, colorScheme: 'dark' }] as const) {
        const page = await visit.open(`${url}/console/keys`, look);
        if (!('javaScript' in look)) await expectAccessible(page);
        const keyboard = new Keyboard(page);
        await keyboard.tabTo(signInWith(page, provider));
        await keyboard.press('Enter');
        await logIn(page);
        await isHeaded(page, 'Keys');
      }
    }),
  );

  it(
    'are out as soon as their session is no longer accepted, also while a page is open',
    inBrowser(async (visit) => {
      const { provider, url, keys } = await withProvider(visit);
      const page = await visit.open(`${url}/console/keys`);
      await signInWith(page, provider).click();
      await logIn(page);
      await isHeaded(page, 'Keys');
      const { id } = (await keys.findByName('ada example org', OPERATOR))!;
      await keys.setEnabled(id, false, OPERATOR);
      await page.reload();
      await isHeaded(page, 'Sign in to svc-api');
      visit.expectTrouble(/^status 403: GET \S+\/sign-in\/callback/);
      // The provider's session continues.
      await signInWith(page, provider).click();
      await isHeaded(page, 'Not signed in');
      await expectAccessible(page);
    }),
  );

  it(
    'learn that the provider is down, with the way back',
    inBrowser(async (visit) => {
      const { provider, url } = await withProvider(visit);
      const page = await visit.open(`${url}/console/keys`);
      provider.isSilent = true;
      visit.expectTrouble(/^status 503: GET \S+\/sign-in\/start/);
      await signInWith(page, provider).click();
      await isHeaded(page, 'Not signed in');
      await expectAccessible(page);
      provider.isSilent = false;
      await page.getByRole('link', { name: 'Back to the console' }).click();
      await signInWith(page, provider).click();
      await logIn(page);
      await isHeaded(page, 'Home');
    }),
  );

  it(
    'decide what an application gets, by the same session, and are not asked for a key',
    inBrowser(async (visit) => {
      const { provider, url, keys } = await withProvider(visit);
      const asked = await askDevice(url, { scope: 'DOCKER:READ_ANY', key_expires_in: '30d' });
      const page = await visit.open(`${url}/device?user_code=${asked.user_code}`);
      await expectAccessible(page);
      await signInWith(page, provider).click();
      await logIn(page);
      await isHeaded(page, 'Grafana sync asks for an API key');
      assert.equal(await page.getByLabel('Your own API key').count(), 0);
      await button(page, 'Approve').click();
      await isHeaded(page, 'Approved');
      const { body } = await pollDevice(url, asked.device_code);
      visit.isSecret(body['access_token'] as string);
      const person = (await keys.findByName('ada example org', OPERATOR))!;
      const { keys: owned } = await keys.list({ owner: ADA.preferred_username }, OPERATOR);
      assert.deepEqual(new Set(owned.map(({ createdBy }) => createdBy)), new Set([person.id, null]));
      await page.goto(`${url}/console/keys`);
      await isHeaded(page, 'Keys');
    }),
  );

  it(
    'are in by the header of their proxy, and out without it',
    inBrowser(async (visit) => {
      const people = { by: { header: 'remote-user', groups: 'remote-groups' }, grant: GRANT };
      const config = { ...defaultConfig(), people };
      const { url, keys } = await visit.serve({ app: { console: true, config } });
      const context = await visit.context();
      await context.setExtraHTTPHeaders({ 'remote-user': 'ada', 'remote-groups': 'admins' });
      const page = await visit.open(`${url}/console/keys`, context);
      await isHeaded(page, 'Keys');
      await expectAccessible(page);
      assert.deepEqual((await keys.findByName('ada', OPERATOR))!.roles, ['ADMIN', 'VIEWER']);
      await context.setExtraHTTPHeaders({});
      await page.reload();
      await isHeaded(page, 'Sign in to svc-api');
    }),
  );
});
