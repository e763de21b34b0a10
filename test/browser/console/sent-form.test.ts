import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { inBrowser } from '../../support/browser.ts';
import { askedByCode, ownKey, sentByApplication } from '../../support/browser/consent-pages.ts';
import { personWith, signedIn, signIn, startConsole } from '../../support/browser/console-pages.ts';
import { isHeaded, problem } from '../../support/browser/page.ts';
import type { Visit } from '../../support/browser/visit.ts';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** A signed-in user on a page that changes a key. */
async function visitKey(visit: Visit, path: string, javaScript: boolean) {
  const service = await startConsole(visit);
  const { apiKey } = await service.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
  const base = `keys/${apiKey.id}`;
  return { ...(await signedIn(visit, `${base}/${path}`, { service, look: { javaScript } })), apiKey };
}

for (const javaScript of [true, false])
  describe(`the answer to a form, in a browser${javaScript ? '' : ' without JavaScript'},`, () => {
    it(
      'keeps the fields for correction',
      inBrowser(async (visit) => {
        const { page, keys, apiKey } = await visitKey(visit, 'edit', javaScript);
        visit.expectTrouble(/^status 4\d\d: POST \S+\/edit$/);
        await page.getByLabel('Description').fill('Builds');
        await page.getByLabel('Limits').fill('many');
        await button(page, 'Save').click();
        assert.match(await problem(page), /Fix 1 field: Limits/);
        assert.equal(await page.getByLabel('Description').inputValue(), 'Builds');
        await page.getByLabel('Limits').fill('5/m');
        await button(page, 'Save').click();
        await isHeaded(page, /^CI/);
        assert.deepEqual((await keys.findById(apiKey.id, OPERATOR))!.limits, ['5/m']);
      }),
    );

    it(
      'is repeated by a reload within a minute, and not done again after that',
      inBrowser(async (visit) => {
        const { page, time } = await visitKey(visit, 'rotation', javaScript);
        await button(page, 'Rotate').click();
        await isHeaded(page, 'New secret of CI');
        const secret = visit.isSecret(await page.getByLabel('Secret of CI').inputValue());
        await page.reload();
        assert.equal(await page.getByLabel('Secret of CI').inputValue(), secret);
        time.now += 60_000;
        visit.expectTrouble(/^status 409: POST \S+\/rotation$/);
        await page.reload();
        await page.getByText('You already sent this form').waitFor();
        assert.ok(!(await page.content()).includes(secret));
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
      'is shown before signing in, without the key',
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
      'is shown again on the pages of consent, without the key',
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
  });
