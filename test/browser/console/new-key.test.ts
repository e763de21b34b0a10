import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { authenticate } from '../../support/keys.ts';
import { inBrowser } from '../../support/browser.ts';
import { expectAccessible } from '../../support/browser/accessible.ts';
import { addTeamKeys, signedIn, startConsole } from '../../support/browser/console-pages.ts';
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
      await hands.tick(box(page, 'ME: read own'));
      visit.expectTrouble(/^status 400: GET \S+\/keys\/new\?answer=/);
      await hands.press(button(page, 'Preview'));
      await page.getByRole('alert').waitFor();
      await hands.look();
      // The summary leads to the field.
      await hands.press(page.getByRole('alert').getByRole('link', { name: 'Name' }));
      await hands.fill(page.getByLabel('Name', { exact: true }), 'CI deploy');
      await hands.choose(page.getByLabel('Expires'), 'After 7 days');
      if (javaScript) await hands.fill(filter(page), 'me read');
      await hands.press(button(page, 'Preview'));
      await isHeaded(page, 'Preview of CI deploy');
      await hands.look();
      await hands.press(button(page, 'Create key'));
      await isHeaded(page, 'CI deploy is created');
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
      assert.deepEqual([permissions, expiresAt! - createdAt], [['ME:READ_OWN'], 7 * 86_400_000]);
      await hands.press(page.getByRole('link', { name: 'Look at the key' }));
      await isHeaded(page, /^CI deploy/);
    }),
  );

describe('creating a key in the console, in a browser,', () => {
  it(
    'begins with what is least, and goes on to a preview',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys/new');
      await page.getByLabel('Name', { exact: true }).fill('CI deploy');
      await page.getByLabel('Description').fill('Builds and deploys; ask Bea');
      await filter(page).fill('docker');
      await box(page, 'DOCKER: read any').check();
      await box(page, 'DOCKER: update any').check();
      await takePicture(page, 'console-create');
      await button(page, 'Preview').click();
      await isHeaded(page, 'Preview of CI deploy');
      await page.getByText('It may be used from anywhere').waitFor();
    }),
  );

  it(
    'tells what the choice comes to, filters it, and counts',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys/new', { look: { width: 360 } });
      const isShown = (rows: number) =>
        until(async () => (await page.locator('.picker tbody tr:visible').count()) === rows);
      const sum = async () => textOf(page.locator('.sum'));
      await filter(page).fill('docker read');
      await isShown(1);
      await box(page, 'DOCKER: read any').check();
      assert.ok(await box(page, 'DOCKER: read own').isDisabled(), 'any includes its own');
      await filter(page).fill('');
      await box(page, 'VMS: update own').check();
      await button(page, 'Chosen: 2').click();
      await isShown(2);
      assert.match(await sum(), /DOCKER.*VMS/);
      await page.getByText('Roles: whole sets of permissions').click();
      await page.getByRole('checkbox', { name: /^GUEST/ }).check();
      assert.match(await sum(), /The role GUEST adds/);
      await button(page, 'Chosen: 3').click();
      await box(page, 'DOCKER: read any').uncheck();
      assert.ok(await box(page, 'DOCKER: read own').isEnabled());
      assert.doesNotMatch(await sum(), /DOCKER/);
    }),
  );

  it(
    'names what it deletes where it replaces a key',
    inBrowser(async (visit) => {
      const service = await startConsole(visit);
      await addTeamKeys(service);
      const { page } = await signedIn(visit, 'keys/new', { service });
      visit.expectTrouble(/^status 409: GET \S+\/keys\/new\?answer=/);
      await fillIn(page);
      await button(page, 'Replace it…').click();
      await page.getByText('The key CI deploy').waitFor();
      await expectAccessible(page);
      await button(page, 'Delete one key and create this one').click();
      await isHeaded(page, 'CI deploy is created');
      visit.isSecret(await page.getByLabel('Secret of CI deploy').inputValue());
    }),
  );

  it(
    'shows the secret once: nobody sees it who goes back',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys/new');
      await fillIn(page);
      await button(page, 'Create key').click();
      await isHeaded(page, 'CI deploy is created');
      const secret = visit.isSecret(await page.getByLabel('Secret of CI deploy').inputValue());
      await button(page, 'I have stored it').click();
      await isHeaded(page, /^CI deploy/);
      visit.expectTrouble(/^status 410: GET \S+\/done\/[\w-]+$/);
      await page.goBack();
      await isHeaded(page, 'Not shown any more');
      await page.getByText('The secret was shown once').waitFor();
      assert.ok(!(await page.content()).includes(secret));
      await page.goBack();
      await isHeaded(page, 'Preview of CI deploy');
      await page.goForward();
      await isHeaded(page, 'Not shown any more');
    }),
  );

  it(
    'creates one key, and shows its secret, whoever clicks twice on a slow connection',
    inBrowser(async (visit) => {
      const { page, context, keys } = await signedIn(visit, 'keys/new');
      await fillIn(page);
      await isHeaded(page, 'Preview of CI deploy');
      const network = await context.newCDPSession(page);
      const slow = { offline: false, latency: 1500, downloadThroughput: -1, uploadThroughput: -1 };
      await network.send('Network.emulateNetworkConditions', slow);
      // What is given up is no trouble here.
      visit.expectTrouble(/^failed: POST \S+\/keys\/new: net::ERR_ABORTED$/);
      const { x, y, width, height } = (await button(page, 'Create key').boundingBox())!;
      const click = () => page.mouse.click(x + width / 2, y + height / 2);
      const sent = page.waitForRequest((request) => request.method() === 'POST');
      await click();
      await sent;
      await click();
      await isHeaded(page, 'CI deploy is created');
      const secret = visit.isSecret(await page.getByLabel('Secret of CI deploy').inputValue());
      const result = await authenticate(keys, secret);
      assert.equal('principal' in result && result.principal.apiKey.name, 'CI deploy');
      assert.equal((await keys.list({ search: 'CI deploy' }, OPERATOR)).keys.length, 1);
    }),
  );

  it(
    'asks once before somebody leaves a secret that is neither copied nor stored',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys/new');
      await fillIn(page);
      await button(page, 'Create key').click();
      await isHeaded(page, 'CI deploy is created');
      visit.isSecret(await page.getByLabel('Secret of CI deploy').inputValue());
      const asked: string[] = [];
      page.on('dialog', (dialog) => {
        asked.push(dialog.type());
        void dialog.dismiss();
      });
      // Shown by the script, which is there then.
      await button(page, 'Copy').waitFor();
      const link = page.getByRole('link', { name: 'Look at the key' });
      await link.click({ noWaitAfter: true });
      await until(() => asked.length > 0);
      await isHeaded(page, 'CI deploy is created');
      await link.click();
      await isHeaded(page, /^CI deploy/);
      assert.deepEqual(asked, ['beforeunload']);
    }),
  );

  it(
    'asks nobody who says that the secret is stored',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys/new');
      await fillIn(page);
      await button(page, 'Create key').click();
      await isHeaded(page, 'CI deploy is created');
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

/** Fills in the form for a new key, and goes on. */
async function fillIn(page: Page): Promise<void> {
  await page.getByLabel('Name', { exact: true }).fill('CI deploy');
  await box(page, 'ME: read own').check();
  await button(page, 'Preview').click();
}
