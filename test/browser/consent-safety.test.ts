import assert from 'node:assert/strict';
import { inBrowser } from '../support/browser.ts';
import { expectAccessible } from '../support/browser/accessible.ts';
import { askedByCode, button, ownKey, sentByApplication } from '../support/browser/consent-pages.ts';
import { signedIn, startConsole } from '../support/browser/console-pages.ts';
import { isHeaded, problem } from '../support/browser/page.ts';
import { APP, authorizeUrl, newPkce } from '../features/consent/support/consent.ts';

describe('the pages of consent, in a browser, after mistakes and under attack', () => {
  it(
    'lead nowhere else: the policy also covers unknown targets',
    inBrowser(async (visit) => {
      const { page, key } = await sentByApplication(visit);
      const other = await visit.site();
      visit.expectTrouble(/form-action|csp|ContentSecurityPolicyIssue/);
      await page.evaluate(`document.forms[0].action = '${other.url}/thief'`);
      await ownKey(page).fill(key);
      const refused = page.waitForEvent('console');
      // Do not wait for navigation: the policy blocks it.
      await button(page, 'Approve').click({ noWaitAfter: true });
      await refused;
      assert.deepEqual(other.asked, []);
    }),
  );

  it(
    'report a wrong key, keep the choices, and do not keep the key',
    inBrowser(async (visit) => {
      const { page, key, granted } = await askedByCode(visit);
      const wrong = visit.isSecret(`${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`);
      visit.expectTrouble(/^status 403: POST \S+\/device$/);
      await page.getByRole('checkbox', { name: 'role:GUEST' }).uncheck();
      await page.getByLabel('Expires after').fill('7d');
      await ownKey(page).fill(wrong);
      await button(page, 'Approve').click();
      assert.match(await problem(page), /key/);
      await expectAccessible(page);
      assert.equal(await page.getByRole('checkbox', { name: 'role:GUEST' }).isChecked(), false);
      assert.equal(await page.getByLabel('Expires after').inputValue(), '7d');
      assert.equal(await ownKey(page).inputValue(), '');
      assert.ok(!(await page.content()).includes(wrong));
      await ownKey(page).fill(key);
      await button(page, 'Approve').click();
      await isHeaded(page, 'Approved');
      assert.equal(await granted(), 'DOCKER:READ_ANY');
    }),
  );

  it(
    'have no key and nothing to decide after going back from the decision',
    inBrowser(async (visit) => {
      const { page, key } = await askedByCode(visit);
      await ownKey(page).fill(key);
      await button(page, 'Approve').click();
      await isHeaded(page, 'Approved');
      visit.expectTrouble(/^status 4\d\d: GET \S+\/device\?user_code=/);
      await page.goBack();
      assert.match(await problem(page), /was already approved/);
      assert.equal(await ownKey(page).count(), 0);
    }),
  );

  it(
    'ask again, without the key, after going back from the application',
    inBrowser(async (visit) => {
      const { page, key, site } = await sentByApplication(visit);
      await ownKey(page).fill(key);
      await button(page, 'Approve').click();
      await page.waitForURL(`${site.url}/done?**`);
      await page.goBack();
      await isHeaded(page, 'Grafana sync asks for an API key');
      assert.equal(await ownKey(page).inputValue(), '');
    }),
  );

  it(
    'recognize a console session, also after a redirect by an application, without JavaScript',
    inBrowser(async (visit) => {
      const service = await startConsole(visit, { consent: 'both', app: { clients: [APP] } });
      const { page } = await signedIn(visit, 'keys', { service, look: { javaScript: false } });
      const { challenge } = newPkce();
      const done = await visit.site('<!doctype html><html lang="en"><title>Done</title><h1>Done</h1></html>');
      const address = authorizeUrl(service.url, { redirect_uri: `${done.url}/done`, code_challenge: challenge });
      const site = await visit.site(
        `<!doctype html><html lang="en"><title>App</title><a href="${address.replaceAll('&', '&amp;')}">Connect</a></html>`,
      );
      await page.goto(site.url);
      await page.getByRole('link', { name: 'Connect' }).click();
      await isHeaded(page, 'Grafana sync asks for an API key');
      assert.equal(await ownKey(page).count(), 0);
      await button(page, 'Approve').click();
      await page.waitForURL(`${done.url}/done?**`);
      const { searchParams } = new URL(page.url());
      assert.deepEqual([searchParams.has('code'), searchParams.get('iss')], [true, service.url]);
    }),
  );

  it(
    'are shown by no other page',
    inBrowser(async (visit) => {
      const { url, user_code, page } = await askedByCode(visit);
      for (const path of ['/', `/device?user_code=${user_code}`]) {
        const attacker = await visit.site(`<!doctype html><title>Win</title><iframe src="${url}${path}"></iframe>`);
        visit.expectTrouble(/frame-ancestors|X-Frame-Options|BLOCKED_BY|ContentSecurityPolicyIssue/);
        await page.goto(attacker.url);
        assert.doesNotMatch(await page.frames()[1]!.content(), /svc-api|API key/);
      }
    }),
  );
});
