import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { inBrowser } from '../../support/browser.ts';
import { askedByCode, ownKey, sentByApplication } from '../../support/browser/consent-pages.ts';
import { accessLevel, personWith, signedIn, signIn, startConsole } from '../../support/browser/console-pages.ts';
import { isHeaded, problem } from '../../support/browser/page.ts';
import type { Visit } from '../../support/browser/visit.ts';
import { APP, askDevice, authorizeUrl, newPkce } from '../../support/consent.ts';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** Leaves a page by a link of it, and looks at it again: by Back, once more by Back after Forward, and by Reload. */
async function lookAgain(page: Page, link: string, look: () => Promise<void>): Promise<void> {
  await look();
  const out = page.getByRole('link', { name: link, exact: true }).first();
  const there = new URL((await out.getAttribute('href'))!, page.url()).href;
  await out.click();
  await page.waitForURL(there);
  for (const isReloaded of [false, true]) {
    await page.goBack();
    await look();
    if (isReloaded) await page.reload();
    await look();
    await page.goForward();
    assert.equal(page.url(), there);
  }
  await page.goBack();
}

/** Somebody who has signed in, and a key that they change. */
async function visitKey(visit: Visit, path: string, javaScript: boolean) {
  const service = await startConsole(visit);
  const { apiKey } = await service.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
  const base = `keys/${apiKey.id}`;
  return { ...(await signedIn(visit, `${base}/${path}`, { service, look: { javaScript } })), apiKey };
}

for (const javaScript of [true, false])
  describe(`what a form is answered, in a browser${javaScript ? '' : ' without JavaScript'},`, () => {
    it(
      'is seen again by who goes back and forth, with what was typed, and corrected there',
      inBrowser(async (visit) => {
        const { page, keys, apiKey } = await visitKey(visit, 'edit', javaScript);
        visit.expectTrouble(/^status 4\d\d: GET \S+\/edit\?answer=/);
        await page.getByLabel('Description').fill('Builds');
        await page.getByLabel('Limits').fill('many');
        await button(page, 'Save').click();
        await lookAgain(page, 'Cancel', async () => {
          assert.match(await problem(page), /Fix 1 field: Limits/);
          assert.equal(await page.getByLabel('Description').inputValue(), 'Builds');
        });
        await page.getByLabel('Limits').fill('several');
        await button(page, 'Save').click();
        await page.getByText('"several" is not a limit').first().waitFor();
        await page.goBack();
        await page.getByText('"many" is not a limit').first().waitFor();
        await page.getByLabel('Limits').fill('5/m');
        await button(page, 'Save').click();
        await isHeaded(page, /^CI/);
        assert.deepEqual((await keys.findById(apiKey.id, OPERATOR))!.limits, ['5/m']);
      }),
    );

    it(
      'is seen again where its address takes forms alone',
      inBrowser(async (visit) => {
        const { page, keys, apiKey, open } = await visitKey(visit, 'rotation', javaScript);
        await keys.rotate(apiKey.id, {}, OPERATOR);
        await open(`keys/${apiKey.id}/rotation`);
        await keys.finishRotation(apiKey.id, OPERATOR);
        visit.expectTrouble(/^status 4\d\d: GET \S+\/finish\?answer=/);
        await button(page, 'Finish now').click();
        await lookAgain(page, '← CI', async () => void (await problem(page)));
      }),
    );

    it(
      'is seen again where nothing was wrong',
      inBrowser(async (visit) => {
        const { page, apiKey, open } = await visitKey(visit, 'contain', javaScript);
        await button(page, 'Contain').click();
        await lookAgain(page, '← CI', () => isHeaded(page, 'Contained'));
        await open('keys/new');
        await page.getByLabel('Name').fill('New');
        await accessLevel(page, 'DOCKER', 'Read').check();
        await button(page, 'Preview').click();
        await isHeaded(page, 'Preview of New');
        await button(page, 'Change').click();
        await lookAgain(page, 'Cancel', async () => {
          await isHeaded(page, 'New key');
          assert.equal(await page.getByLabel('Name').inputValue(), 'New');
        });
        await page.getByLabel('Name').fill(apiKey.name);
        visit.expectTrouble(/^status 409: GET \S+\/new\?answer=/);
        await button(page, 'Preview').click();
        await lookAgain(page, 'Open CI', () => page.getByText('Replace it…').waitFor());
      }),
    );

    it(
      'is seen again where a limit was reached',
      inBrowser(async (visit) => {
        const { page, id, keys, time, url } = await visitKey(visit, 'edit', javaScript);
        await keys.update(id, { limits: ['2/m'] }, OPERATOR);
        for (let count = 0; count < 2; count += 1) await page.reload();
        visit.expectTrouble(/^status 429: POST \S+\/edit$/);
        await button(page, 'Save').click();
        await isHeaded(page, 'Too many requests');
        await page.goto(`${url}/device`).catch(() => {});
        time.now += 60_000;
        await page.goBack();
        await isHeaded(page, 'Too many requests');
      }),
    );

    it(
      'is seen again before anybody has signed in, without the key',
      inBrowser(async (visit) => {
        const service = await startConsole(visit);
        const { key } = await personWith(service, visit);
        const wrong = visit.isSecret(`${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`);
        const page = await visit.open(`${service.url}/console/audit-log?actor=Ada`, { javaScript });
        visit.expectTrouble(/^status 403: POST \S+\/sign-in$/);
        await signIn(page, wrong);
        for (let times = 0; times < 2; times += 1) {
          await page.getByRole('alert').waitFor();
          assert.match(await problem(page), /The API key is not valid/);
          assert.ok(!(await page.content()).includes(wrong));
          await page.goto(service.url);
          await page.goBack();
          await page.reload();
        }
        assert.equal(await page.getByLabel('API key').inputValue(), '');
        await signIn(page, key);
        await isHeaded(page, 'Audit log');
      }),
    );

    it(
      'is seen again on the pages of consent, by who enters a key, without that',
      inBrowser(async (visit) => {
        for (const start of [askedByCode, sentByApplication]) {
          const { page, key, url } = await start(visit, { javaScript });
          const wrong = visit.isSecret(`${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`);
          visit.expectTrouble(/^status 403: POST \S+\/(device|authorize)$/);
          await page.getByRole('checkbox', { name: 'role:GUEST' }).uncheck();
          await ownKey(page).fill(wrong);
          await button(page, 'Approve').click();
          for (let times = 0; times < 2; times += 1) {
            assert.match(await problem(page), /key/);
            assert.ok(!(await page.content()).includes(wrong));
            assert.equal(await page.getByRole('checkbox', { name: 'role:GUEST' }).isChecked(), false);
            await page.goto(url);
            await page.goBack();
          }
          assert.equal(await ownKey(page).inputValue(), '');
        }
      }),
    );

    it(
      'is seen again on the pages of consent by who has signed in',
      inBrowser(async (visit) => {
        const service = await startConsole(visit, { consent: 'both', app: { clients: [APP] } });
        const { page } = await signedIn(visit, 'keys', { service, look: { javaScript } });
        const { url } = service;
        const code = await askDevice(url, { scope: 'role:GUEST' });
        const redirect_uri = `${(await visit.site()).url}/done`;
        visit.expectTrouble(/^status 400: GET \S+\/(device|authorize)\?answer=/);
        for (const address of [
          authorizeUrl(url, { redirect_uri, code_challenge: newPkce().challenge }),
          `${url}/device?user_code=${code.user_code}`,
        ]) {
          await page.goto(address);
          await page.getByLabel('Expires').selectOption('date');
          await button(page, 'Approve').click();
          await lookAgain(page, 'Audit log', async () => {
            await isHeaded(page, 'Grafana sync asks for an API key');
            await page.locator('.wrong').waitFor();
          });
        }
        await page.getByLabel('Expires').selectOption({ index: 0 });
        await button(page, 'Approve').click();
        await lookAgain(page, 'Find it', () => isHeaded(page, 'Agreed'));
        await page.getByRole('button', { name: 'Sign out' }).click();
        await isHeaded(page, 'Sign in to svc-api');
        visit.expectTrouble(/^status 4\d\d: GET \S+\/device/);
        await page.goBack();
        await isHeaded(page, 'Connect an application');
      }),
    );
  });
