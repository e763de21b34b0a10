import assert from 'node:assert/strict';
import { inBrowser } from '../support/browser.ts';
import { expectAccessible } from '../support/browser/accessible.ts';
import { askedByCode, button, ownKey, sentByApplication } from '../support/browser/consent-pages.ts';
import { isHeaded, problem } from '../support/browser/page.ts';
import { Keyboard } from '../support/browser/keyboard.ts';
import { takePicture } from '../support/browser/picture.ts';
import { askDevice } from '../features/consent/support/consent.ts';

describe('the pages of consent, in a browser', () => {
  it(
    'take consent by the mouse, and are accessible',
    inBrowser(async (visit) => {
      const { page, user_code, url, key, granted } = await askedByCode(visit);
      await page.goto(`${url}/device`);
      await expectAccessible(page);
      await page.getByLabel('Code shown by the application').fill(user_code.toLowerCase());
      await button(page, 'Continue').click();
      await isHeaded(page, 'Grafana sync asks for an API key');
      await takePicture(page, 'consent');
      await expectAccessible(page);
      await ownKey(page).fill(key);
      await button(page, 'Approve').click();
      await isHeaded(page, 'Approved');
      await expectAccessible(page);
      assert.equal(await granted(), 'role:GUEST DOCKER:READ_ANY');
    }),
  );

  it(
    'take less than was asked for',
    inBrowser(async (visit) => {
      const { page, key, granted } = await askedByCode(visit);
      await page.getByRole('checkbox', { name: 'role:GUEST' }).uncheck();
      await ownKey(page).fill(key);
      await button(page, 'Approve').click();
      await isHeaded(page, 'Approved');
      assert.equal(await granted(), 'DOCKER:READ_ANY');
    }),
  );

  it(
    'take a refusal, without a key',
    inBrowser(async (visit) => {
      const { page, granted } = await askedByCode(visit);
      await button(page, 'Deny').click();
      await isHeaded(page, 'Denied');
      await expectAccessible(page);
      assert.equal(await granted(), 'access_denied');
    }),
  );

  it(
    'are used by the keyboard alone, with a focus that can be seen, also in the dark on a telephone',
    inBrowser(async (visit) => {
      for (const look of [{}, { width: 360, colorScheme: 'dark' }] as const) {
        const { page, url, user_code, key, granted } = await askedByCode(visit, look);
        await page.goto(`${url}/device`);
        const keyboard = new Keyboard(page);
        await keyboard.tabTo(page.getByLabel('Code shown by the application'));
        await keyboard.type(user_code);
        await keyboard.press('Enter');
        await page.waitForURL(/user_code=/);
        await keyboard.tabTo(page.getByRole('checkbox', { name: 'role:GUEST' }));
        await keyboard.press('Space');
        await keyboard.tabTo(page.getByLabel('Expires after'));
        await keyboard.type('7d');
        await keyboard.tabTo(ownKey(page));
        await keyboard.type(key);
        await keyboard.tabTo(button(page, 'Approve'));
        await keyboard.press('Space');
        await isHeaded(page, 'Approved');
        assert.equal(await granted(), 'DOCKER:READ_ANY');
      }
    }),
  );

  it(
    'have tab stops in reading order',
    inBrowser(async (visit) => {
      const { page } = await askedByCode(visit);
      const names = (await new Keyboard(page).stops()).map((stop) => stop.replace(/^(\w+ "\S+).*/, '$1'));
      assert.deepEqual(names, [
        'a "Skip',
        'input "Reads',
        'input "Reads',
        'input "Expires',
        'input "Your',
        'button "Approve"',
        'button "Deny"',
      ]);
    }),
  );

  it(
    'need no JavaScript',
    inBrowser(async (visit) => {
      const { page, key, granted, site } = await sentByApplication(visit, { javaScript: false });
      await ownKey(page).fill(key);
      await button(page, 'Approve').click();
      await page.waitForURL(`${site.url}/done?**`);
      assert.equal(await granted(), 'role:GUEST DOCKER:READ_ANY');
    }),
  );

  it(
    'lead back to the application, which their policy lets them do',
    inBrowser(async (visit) => {
      const { page, key, granted, site, url } = await sentByApplication(visit, { width: 360 });
      await expectAccessible(page);
      await ownKey(page).fill(key);
      await button(page, 'Approve').click();
      await page.waitForURL(`${site.url}/done?**`);
      const { searchParams } = new URL(page.url());
      assert.deepEqual([searchParams.get('state'), searchParams.get('iss')], ['the state', url]);
      assert.equal(await granted(), 'role:GUEST DOCKER:READ_ANY');
    }),
  );

  it(
    'lead back to the application after a refusal, too',
    inBrowser(async (visit) => {
      const { page, site } = await sentByApplication(visit);
      await button(page, 'Deny').click();
      await page.waitForURL(`${site.url}/done?**`);
      assert.equal(new URL(page.url()).searchParams.get('error'), 'access_denied');
    }),
  );

  it(
    'fit on a telephone, however long the names and words of an application and of what it asks for',
    inBrowser(async (visit) => {
      const long = { id: 'w'.repeat(60), name: 'W'.repeat(60), redirects: [] };
      const resource = `VERY_${'LONG'.repeat(10)}`;
      const { url } = await visit.serve({ consent: 'both', app: { clients: [long] }, resources: [resource] });
      const { user_code } = await askDevice(url, { client_id: long.id, scope: `${resource}:READ_ANY` });
      await expectAccessible(await visit.open(`${url}/device?user_code=${user_code}`));
    }),
  );

  it(
    'ask for the code again where it is wrong',
    inBrowser(async (visit) => {
      const { page, url, user_code } = await askedByCode(visit);
      visit.expectTrouble(/^status 404: GET \S+\/device\?user_code=BBBB-BBBB$/);
      await page.goto(`${url}/device`);
      await page.getByLabel('Code shown by the application').fill('BBBB-BBBB');
      await button(page, 'Continue').click();
      assert.match(await problem(page), /BBBB-BBBB|code/);
      await expectAccessible(page);
      await page.getByLabel('Code shown by the application').fill(user_code);
      await button(page, 'Continue').click();
      await isHeaded(page, 'Grafana sync asks for an API key');
    }),
  );
});
