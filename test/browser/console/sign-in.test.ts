import assert from 'node:assert/strict';
import { inBrowser } from '../../support/browser.ts';
import { expectAccessible } from '../../support/browser/accessible.ts';
import { personWith, signIn, startConsole } from '../../support/browser/console-pages.ts';
import { isHeaded, problem } from '../../support/browser/page.ts';
import { Keyboard } from '../../support/browser/keyboard.ts';

describe('signing in to the console, in a browser', () => {
  it(
    'is accessible, also after a mistake, and does not show the key again',
    inBrowser(async (visit) => {
      const service = await startConsole(visit);
      const { key } = await personWith(service, visit);
      const wrong = visit.isSecret(`${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`);
      const page = await visit.open(`${service.url}/console/audit-log?key=Ada`);
      await expectAccessible(page);
      visit.expectTrouble(/^status 403: POST \S+\/sign-in$/);
      await signIn(page, wrong);
      assert.match(await problem(page), /The API key is not valid/);
      assert.equal(await page.getByLabel('API key').inputValue(), '');
      assert.ok(!(await page.content()).includes(wrong));
      await expectAccessible(page);
      await signIn(page, key);
      await isHeaded(page, 'Audit log');
      assert.equal(page.url(), `${service.url}/console/audit-log?key=Ada`);
    }),
  );

  it(
    'is done by the keyboard alone, and undone, also in the dark on a telephone',
    inBrowser(async (visit) => {
      for (const look of [{}, { width: 360, colorScheme: 'dark' }] as const) {
        const service = await startConsole(visit);
        const { key } = await personWith(service, visit);
        const page = await visit.open(`${service.url}/console`, look);
        const keyboard = new Keyboard(page);
        assert.deepEqual(await keyboard.stops(), ['button "Sign in"'], 'after the field');
        await keyboard.tabTo(page.getByLabel('API key'));
        await keyboard.type(key);
        await keyboard.press('Enter');
        await isHeaded(page, 'Home');
        await keyboard.tabTo(page.getByRole('button', { name: 'Sign out' }));
        await keyboard.press('Space');
        await isHeaded(page, 'Sign in to svc-api');
      }
    }),
  );

  it(
    'begins in its field, and leads back to the part of the page that was asked for',
    inBrowser(async (visit) => {
      const service = await startConsole(visit);
      const { key, id } = await personWith(service, visit);
      const page = await visit.open(`${service.url}/console/keys/${id}#use`);
      await isHeaded(page, 'Sign in to svc-api');
      await page.keyboard.type(key);
      await page.keyboard.press('Enter');
      await isHeaded(page, /^Ada/);
      assert.equal(page.url(), `${service.url}/console/keys/${id}#use`);
    }),
  );

  it(
    'needs no JavaScript, nor does signing out',
    inBrowser(async (visit) => {
      const service = await startConsole(visit);
      const { key } = await personWith(service, visit);
      const page = await visit.open(`${service.url}/console`, { javaScript: false });
      await signIn(page, key);
      await isHeaded(page, 'Home');
      await page.getByRole('button', { name: 'Sign out' }).click();
      await isHeaded(page, 'Sign in to svc-api');
    }),
  );

  it(
    'gives the browser a token that neither scripts nor other sites get',
    inBrowser(async (visit) => {
      const service = await startConsole(visit);
      const { key } = await personWith(service, visit);
      const page = await visit.open(`${service.url}/console`);
      await signIn(page, key);
      await isHeaded(page, 'Home');
      const context = page.context();
      const [cookie, ...others] = await context.cookies();
      assert.deepEqual(others, []);
      visit.isSecret(cookie!.value);
      const { name, httpOnly, sameSite, path, secure } = cookie!;
      assert.deepEqual([name, httpOnly, sameSite, path, secure], ['svc_api_session', true, 'Strict', '/', false]);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await isHeaded(page, 'Sign in to svc-api');
      assert.deepEqual(await context.cookies(), []);
    }),
  );
});
