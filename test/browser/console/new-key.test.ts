import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { authenticate } from '../../support/keys.ts';
import { inBrowser } from '../../support/browser.ts';
import { expectAccessible } from '../../support/browser/accessible.ts';
import { accessLevel, addTeamKeys, signedIn, startConsole } from '../../support/browser/console-pages.ts';
import { Keyboard } from '../../support/browser/keyboard.ts';
import { WAYS } from '../../support/browser/hands.ts';
import { isHeaded, textOf } from '../../support/browser/page.ts';
import { takePicture } from '../../support/browser/picture.ts';
import { query } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const box = (page: Page, name: string) => page.getByRole('checkbox', { name, exact: true });
const filter = (page: Page) => page.getByLabel('Filter the permissions');

for (const [words, look, handsOn] of WAYS)
  it(
    `a key is created in the console, ${words}, copied, and used`,
    inBrowser(async (visit) => {
      const { page, context, url, keys } = await signedIn(visit, 'keys', { look });
      const hands = handsOn(page);
      const { javaScript = true } = look;
      await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url });
      await hands.press(page.getByRole('link', { name: 'New key' }));
      await isHeaded(page, 'New key');
      await hands.fill(page.getByLabel('Name', { exact: true }), 'CI_deploy');
      if (javaScript) await hands.fill(filter(page), 'me read');
      await hands.select(accessLevel(page, 'ME', 'Read'));
      visit.expectTrouble(/^status 400: POST \S+\/keys\/new$/);
      await hands.press(button(page, 'Preview'));
      await page.getByRole('alert').waitFor();
      await hands.look();
      // The error summary links to the field.
      await hands.press(page.getByRole('alert').getByRole('link', { name: 'Name' }));
      await hands.fill(page.getByLabel('Name', { exact: true }), 'CI deploy');
      await hands.choose(page.getByLabel('Expires'), '7 days');
      await hands.press(button(page, 'Preview'));
      await isHeaded(page, 'Preview of CI deploy');
      await hands.look();
      await hands.press(button(page, 'Create key'));
      await isHeaded(page, 'CI deploy created');
      const secret = visit.isSecret(await page.getByLabel('Secret of CI deploy').inputValue());
      await hands.look();
      if (javaScript) {
        await hands.press(button(page, 'Copy'));
        await page.getByText('Copied.').waitFor();
        assert.equal(await page.evaluate('navigator.clipboard.readText()'), secret);
      } else assert.equal(await button(page, 'Copy').count(), 0);
      const { body } = await query(url, secret, '{ me { name } }');
      assert.deepEqual(body, { data: { me: { name: 'CI deploy' } } });
      const { permissions, expiresAt, createdAt } = (await keys.findByName('CI deploy', OPERATOR))!;
      assert.deepEqual([permissions, expiresAt! - createdAt], [['ME:READ_ANY'], 7 * 86_400_000]);
      await hands.press(page.getByRole('link', { name: 'Open the key' }));
      await isHeaded(page, /^CI deploy/);
    }),
  );

describe('creating a key in the console, in a browser,', () => {
  it(
    'starts with the least access, and continues to a preview',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys/new');
      await page.getByLabel('Name', { exact: true }).fill('CI deploy');
      await page.getByLabel('Description').fill('Builds and deploys; ask Bea');
      await button(page, 'Deploy services').click();
      await filter(page).fill('se');
      await accessLevel(page, 'SERVICES', 'Custom').check();
      await takePicture(page, 'console-create', 700);
      await button(page, 'Preview').click();
      await isHeaded(page, 'Preview of CI deploy');
      await page.getByText('It can be used from anywhere').waitFor();
    }),
  );

  it(
    'summarizes, filters and counts the choice',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys/new', { look: { width: 360 } });
      const isShown = (rows: number) =>
        until(async () => (await page.locator('.picker .row:visible').count()) === rows);
      const sum = page.getByRole('complementary', { name: 'Summary of the key' });
      const says = (text: RegExp) => until(async () => text.test(await textOf(sum)));
      await page.getByLabel('Name', { exact: true }).fill('CI deploy');
      await page.getByLabel('Expires').selectOption('7 days');
      await says(/^CI deploy Expires: 7 days This key can Nothing\.$/);
      await filter(page).fill('docker read');
      await isShown(1);
      await accessLevel(page, 'DOCKER', 'Read').check();
      await says(/Read all DOCKER/);
      await accessLevel(page, 'DOCKER', 'Custom').check();
      assert.ok(await box(page, 'DOCKER: read any').isChecked());
      assert.ok(await box(page, 'DOCKER: read own').isDisabled(), 'any includes its own');
      await filter(page).fill('');
      await accessLevel(page, 'VMS', 'Custom').check();
      await box(page, 'VMS: update own').check();
      await button(page, 'Chosen: 2').click();
      await isShown(2);
      await expectAccessible(page);
      await says(/DOCKER.*VMS/);
      await page.getByRole('checkbox', { name: /^GUEST/ }).check();
      await says(/The role GUEST adds/);
      await button(page, 'Chosen: 3').click();
      await accessLevel(page, 'DOCKER', 'None').check();
      await until(async () => !(await textOf(sum)).includes('DOCKER'));
      await accessLevel(page, 'API_KEY', 'All').check();
      await says(/API_KEY:CREATE_ANY: It can create keys/);
      await button(page, 'Monitor').click();
      await says(/Read all DASHBOARD, INFO.* The role GUEST adds/);
      assert.ok(await accessLevel(page, 'SERVICES', 'Read').isChecked());
      assert.ok(await accessLevel(page, 'API_KEY', 'None').isChecked());
    }),
  );

  it(
    'is one stop of Tab for all resources: arrows lead from one to the next, and from level to level',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys/new', { look: { width: 320, colorScheme: 'dark' } });
      const keyboard = new Keyboard(page);
      const stops = await keyboard.stops();
      assert.ok(stops.length < 40, `${stops.length} stops: ${stops.join(', ')}`);
      const focused = () => page.evaluate<string>('`${document.activeElement.name} ${document.activeElement.value}`');
      await keyboard.tabTo(accessLevel(page, 'ACTIVATION_CODE', 'None'));
      await keyboard.press('ArrowDown');
      await keyboard.press('ArrowRight');
      assert.equal(await focused(), 'access.API_KEY READ_ANY');
      assert.ok(await accessLevel(page, 'API_KEY', 'Read').isChecked());
      await keyboard.press('ArrowUp');
      assert.equal(await focused(), 'access.ACTIVATION_CODE ');
      await keyboard.press('End');
      assert.equal(await focused(), 'access.WELCOME ');
      await keyboard.press('ArrowLeft');
      assert.equal(await focused(), 'access.WELCOME custom');
      // Its single actions are the next tab stops.
      assert.match((await keyboard.tab())!, /WELCOME: read own/);
      await keyboard.press('Space');
      await keyboard.tab('Shift+Tab');
      await keyboard.press('Home');
      assert.equal(await focused(), 'access.ACTIVATION_CODE ');
      await page.getByLabel('Name', { exact: true }).fill('Arrows');
      await keyboard.press('Enter');
      await isHeaded(page, 'Preview of Arrows');
      assert.match(await textOf(page.locator('main')), /Grants API_KEY:READ_ANY WELCOME:READ_OWN/);
    }),
  );

  for (const [words, look] of [
    ['', {}],
    [' without JavaScript', { javaScript: false }],
  ] as const)
    it(
      `keeps its fields while the session ends${words}, on a slow connection`,
      inBrowser(async (visit) => {
        const { page, key, time, context } = await signedIn(visit, 'keys/new', { look });
        const network = await context.newCDPSession(page);
        const slow = { offline: false, latency: 500, downloadThroughput: -1, uploadThroughput: -1 };
        await network.send('Network.emulateNetworkConditions', slow);
        await page.getByLabel('Name', { exact: true }).fill('CI deploy');
        await accessLevel(page, 'DOCKER', 'Write').check();
        time.now += 31 * 60_000;
        await button(page, 'Preview').click();
        await page.getByText('Sign in to continue with your form').waitFor();
        if (!('javaScript' in look)) await expectAccessible(page);
        await page.getByLabel('API key').fill(key);
        await button(page, 'Sign in').click();
        await page.getByText('Your form is as you left it.').waitFor();
        assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'CI deploy');
        assert.ok(await accessLevel(page, 'DOCKER', 'Write').isChecked());
        await button(page, 'Preview').click();
        await isHeaded(page, 'Preview of CI deploy');
        await page.goBack();
        await page.getByText('Your form is as you left it.').waitFor();
      }),
    );

  it(
    'takes a form along that is looked at again after the end of the session',
    inBrowser(async (visit) => {
      const { page, key, time } = await signedIn(visit, 'keys/new');
      await page.getByLabel('Name', { exact: true }).fill('CI deploy');
      await accessLevel(page, 'DOCKER', 'All').check();
      time.now += 31 * 60_000;
      visit.expectTrouble(/^(status 401|failed): GET \S+\/console\/session(: net::ERR_ABORTED)?$/);
      await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
      await page.getByText('Sign in to continue with your form').waitFor();
      await page.getByLabel('API key').fill(key);
      await button(page, 'Sign in').click();
      await page.getByText('Your form is as you left it.').waitFor();
      assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'CI deploy');
      assert.ok(await accessLevel(page, 'DOCKER', 'All').isChecked());
    }),
  );

  it(
    'names the key that it deletes by replacing it',
    inBrowser(async (visit) => {
      const service = await startConsole(visit);
      await addTeamKeys(service);
      const { page } = await signedIn(visit, 'keys/new', { service });
      visit.expectTrouble(/^status 409: POST \S+\/keys\/new$/);
      await fillIn(page);
      await button(page, 'Replace it…').click();
      await page.getByText('The key CI deploy').waitFor();
      await expectAccessible(page);
      await button(page, 'Delete one key and create this one').click();
      await isHeaded(page, 'CI deploy created');
      visit.isSecret(await page.getByLabel('Secret of CI deploy').inputValue());
    }),
  );

  it(
    'shows the secret once, and not after going back',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys/new');
      await fillIn(page);
      await button(page, 'Create key').click();
      await isHeaded(page, 'CI deploy created');
      const secret = visit.isSecret(await page.getByLabel('Secret of CI deploy').inputValue());
      await button(page, 'I have stored it').click();
      await isHeaded(page, /^CI deploy/);
      // The browser asks whether to send the form again.
      visit.expectTrouble(/^failed: POST \S+\/keys\/new: net::ERR_CACHE_MISS$/);
      await assert.rejects(page.goBack(), /ERR_CACHE_MISS/);
      await page.waitForURL(/^chrome-error:/);
      assert.ok(!(await page.content()).includes(secret));
    }),
  );

  it(
    'creates one key, and shows its secret, after two clicks on a slow connection',
    inBrowser(async (visit) => {
      const { page, keys } = await signedIn(visit, 'keys/new');
      await fillIn(page);
      await isHeaded(page, 'Preview of CI deploy');
      const clickedTwice = Promise.withResolvers<void>();
      let answered = 0;
      await page.route('**/keys/new', async (route) => {
        const response = await route.fetch({ maxRedirects: 0 });
        answered += 1;
        await clickedTwice.promise;
        // The browser no longer waits for the first answer.
        await route.fulfill({ response }).catch(() => {});
      });
      // The cancelled request is expected.
      visit.expectTrouble(/^failed: POST \S+\/keys\/new: net::ERR_ABORTED$/);
      const { x, y, width, height } = (await button(page, 'Create key').boundingBox())!;
      const click = () => page.mouse.click(x + width / 2, y + height / 2);
      await click();
      await until(() => answered === 1);
      await click();
      await until(() => answered === 2);
      clickedTwice.resolve();
      await isHeaded(page, 'CI deploy created');
      const secret = visit.isSecret(await page.getByLabel('Secret of CI deploy').inputValue());
      const result = await authenticate(keys, secret);
      assert.equal('principal' in result && result.principal.apiKey.name, 'CI deploy');
      assert.equal((await keys.list({ search: 'CI deploy' }, OPERATOR)).keys.length, 1);
    }),
  );

  it(
    'warns once before leaving a secret that is neither copied nor stored',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys/new');
      await fillIn(page);
      await button(page, 'Create key').click();
      await isHeaded(page, 'CI deploy created');
      visit.isSecret(await page.getByLabel('Secret of CI deploy').inputValue());
      const asked: string[] = [];
      page.on('dialog', (dialog) => {
        asked.push(dialog.type());
        void dialog.dismiss();
      });
      // A script adds this button, so it has run.
      await button(page, 'Copy').waitFor();
      const link = page.getByRole('link', { name: 'Open the key' });
      await link.click({ noWaitAfter: true });
      await until(() => asked.length > 0);
      await isHeaded(page, 'CI deploy created');
      await link.click();
      await isHeaded(page, /^CI deploy/);
      assert.deepEqual(asked, ['beforeunload']);
    }),
  );

  it(
    'does not warn once the secret is said to be stored',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys/new');
      await fillIn(page);
      await button(page, 'Create key').click();
      await isHeaded(page, 'CI deploy created');
      visit.isSecret(await page.getByLabel('Secret of CI deploy').inputValue());
      const asked: string[] = [];
      page.on('dialog', (dialog) => {
        asked.push(dialog.type());
        void dialog.accept();
      });
      await button(page, 'I have stored it').click();
      await isHeaded(page, /^CI deploy/);
      assert.deepEqual(asked, []);
    }),
  );
});

/** Fills in the form for a new key, and submits it. */
async function fillIn(page: Page): Promise<void> {
  await page.getByLabel('Name', { exact: true }).fill('CI deploy');
  await accessLevel(page, 'ME', 'Read').check();
  await button(page, 'Preview').click();
}
