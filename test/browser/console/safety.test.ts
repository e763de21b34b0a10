import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { inBrowser } from '../../support/browser.ts';
import { addTeamKeys, signedIn, startConsole } from '../../support/browser/console-pages.ts';
import { isHeaded } from '../../support/browser/page.ts';

describe('the console under attack, in a browser', () => {
  it(
    'is shown by no other page',
    inBrowser(async (visit) => {
      const { page, url } = await signedIn(visit, 'keys');
      for (const path of ['sign-in', 'keys', 'assets/none']) {
        const attacker = await visit.site(`<!doctype html><title>Win</title><iframe src="${url}/console/${path}">`);
        visit.expectTrouble(/frame-ancestors|X-Frame-Options|BLOCKED_BY|ContentSecurityPolicyIssue|status 404/);
        await page.goto(attacker.url);
        assert.doesNotMatch(await page.frames()[1]!.content(), /svc-api|API key/);
      }
    }),
  );

  it(
    'does nothing for a form of another page, wherever that is, and keeps its session',
    inBrowser(async (visit) => {
      const service = await startConsole(visit);
      const ids = await addTeamKeys(service);
      const { page, url, keys, open, context } = await signedIn(visit, 'keys', { service });
      const id = ids['CI deploy']!;
      const actions = ['sign-out', 'keys/new', `keys/${id}/disable`, `keys/${id}/delete`];
      const form = (path: string) =>
        `<form method="post" action="${url}/console/${path}"><button name="name" value="CI deploy">${path}</button></form>`;
      // Another port is the same site, so the cookie is sent. Another host is not.
      for (const host of ['127.0.0.1', '127.0.0.2']) {
        const site = await visit.site(`<!doctype html><title>Win</title>${actions.map(form).join('')}`, host);
        for (const path of actions) {
          await page.goto(site.url);
          await page.getByRole('button', { name: path }).click();
          await isHeaded(page, 'Not allowed');
        }
      }
      visit.expectTrouble(/^status 403: POST \S+\/console\//);
      visit.expectTrouble(/^issue CookieIssue: .*"ExcludeSameSiteStrict"/);
      assert.equal((await keys.findById(id, OPERATOR))?.disabledAt, null);
      await open('keys');
      assert.equal((await context.cookies()).length, 1);
      assert.ok(page.url().endsWith('/console/keys'));
    }),
  );

  it(
    'sends no form elsewhere, and runs no script but its own',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, 'keys');
      const other = await visit.site();
      visit.expectTrouble(/ContentSecurityPolicyIssue|Content Security Policy|csp|TrustedScript/);
      const refused = page.waitForEvent('console');
      await page.evaluate(`document.querySelector('[role=search]').action = '${other.url}/thief'`);
      await page.getByRole('button', { name: 'Search' }).click({ noWaitAfter: true });
      await refused;
      await page
        .evaluate(`document.body.append(Object.assign(document.createElement('script'), { text: 'window.ran = 1' }))`)
        .catch(() => {});
      assert.equal(await page.evaluate("'ran' in window"), false);
      assert.deepEqual(other.asked, []);
    }),
  );
});
