import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { inBrowser, inBrowserWithMemory } from '../../support/browser.ts';
import { signedIn } from '../../support/browser/console-pages.ts';
import { isHeaded } from '../../support/browser/page.ts';

/** The response for an ended session. The page stops reading it and reloads. */
const IS_OVER = /^(status 401|failed): GET \S+\/console\/session(: net::ERR_ABORTED)?$/;

/** Sends the event of a tab that becomes visible. In Playwright, tabs are never hidden. */
const lookAt = async (page: Page) => {
  await page.bringToFront();
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
};

describe('a session of the console, in a browser', () => {
  it(
    'ends with its key, in another tab, too, once that is looked at',
    inBrowser(async (visit) => {
      const { page, open, context, url, keys, id } = await signedIn(visit, 'keys');
      const other = await visit.open(`${url}/console/audit-log`, context);
      await isHeaded(other, 'Audit log');
      await keys.delete([id], OPERATOR);
      visit.expectTrouble(IS_OVER);
      await lookAt(other);
      await isHeaded(other, 'Sign in to svc-api');
      await open('keys');
      await isHeaded(page, 'Sign in to svc-api');
      assert.deepEqual(await context.cookies(), []);
    }),
  );

  it(
    'ends in all tabs when one signs out',
    inBrowser(async (visit) => {
      const { page, context, url } = await signedIn(visit, 'keys');
      const other = await visit.open(`${url}/console/audit-log`, context);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await isHeaded(page, 'Sign in to svc-api');
      visit.expectTrouble(IS_OVER);
      await lookAt(other);
      await isHeaded(other, 'Sign in to svc-api');
    }),
  );

  for (const javaScript of [true, false])
    it(
      `goes on where somebody follows a link of another site ${javaScript ? '' : 'without scripts'}`.trim(),
      inBrowser(async (visit) => {
        const { url, context } = await signedIn(visit, 'keys', { look: { javaScript } });
        const other = await visit.site(
          `<!doctype html><title>Mail</title><a href="${url}/console/audit-log?actor=Ada">Look</a>`,
          '127.0.0.2',
        );
        const page = await visit.open(other.url, context);
        // The browser reports that it withheld the cookie from the link.
        visit.expectTrouble(/^issue CookieIssue: .*ExcludeSameSiteStrict/);
        await page.getByRole('link', { name: 'Look' }).click();
        await isHeaded(page, 'Audit log');
        assert.equal(page.url(), `${url}/console/audit-log?actor=Ada`);
        // Without a session, visitors sign in first and are then redirected to the page.
        await context.clearCookies();
        await page.goto(other.url);
        await page.getByRole('link', { name: 'Look' }).click();
        await isHeaded(page, 'Sign in to svc-api');
        assert.match(page.url(), /sign-in\?next=audit-log/);
      }),
    );

  it(
    'goes on in a tab that is looked at again, where nothing that was typed is lost',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys');
      await page.getByRole('searchbox').fill('backup');
      const asked = page.waitForResponse(/\/console\/session$/);
      await lookAt(page);
      assert.equal((await asked).status(), 204);
      assert.equal(await page.getByRole('searchbox').inputValue(), 'backup');
    }),
  );

  for (const [javaScript, words] of [
    [true, ''],
    [false, ', without JavaScript, too'],
  ] as const)
    it(
      `shows nothing after going back once it has ended${words}`,
      inBrowser(async (visit) => {
        const { page } = await signedIn(visit, 'keys', { look: { javaScript } });
        await page.getByRole('link', { name: 'Audit log' }).click();
        await page.getByRole('button', { name: 'Sign out' }).click();
        await isHeaded(page, 'Sign in to svc-api');
        await page.goBack();
        await isHeaded(page, 'Sign in to svc-api');
      }),
    );

  it(
    'shows nothing of a page that the browser has kept, before it is found to go on',
    inBrowserWithMemory(async (visit) => {
      const { page, context, url, keys, id } = await signedIn(visit, 'keys');
      const other = await visit.open(`${url}/console/audit-log`, context);
      const { url: elsewhere } = await visit.site();
      const leaveAndGoBack = async (page: Page) => {
        await page.evaluate('window.isKept = true');
        await page.goto(elsewhere);
        await page.goBack({ waitUntil: 'commit' });
      };
      const answer = Promise.withResolvers<void>();
      await page.route('**/console/session', async (route) => {
        await answer.promise;
        await route.continue();
      });
      await leaveAndGoBack(page);
      assert.deepEqual(await page.evaluate('[window.isKept, document.body.hidden]'), [true, true]);
      answer.resolve();
      await isHeaded(page, 'Keys');

      await keys.delete([id], OPERATOR);
      visit.expectTrouble(IS_OVER);
      await leaveAndGoBack(other);
      await isHeaded(other, 'Sign in to svc-api');
    }),
  );
});
