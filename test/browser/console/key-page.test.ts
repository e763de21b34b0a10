import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { inBrowser } from '../../support/browser.ts';
import { expectAccessible } from '../../support/browser/accessible.ts';
import { signedIn, startConsole } from '../../support/browser/console-pages.ts';
import { Keyboard } from '../../support/browser/keyboard.ts';
import { isHeaded } from '../../support/browser/page.ts';
import { takePicture } from '../../support/browser/picture.ts';
import type { Look, Visit } from '../../support/browser/visit.ts';
import { createPrincipal } from '../../support/keys.ts';
import { query } from '../../support/server.ts';

const HOUR = 3_600_000;

/** The page of a key in constant use, with a restricting parent and a child. */
async function visitUsedKey(visit: Visit, look: Look = {}) {
  const service = await startConsole(visit);
  const { keys, time, url } = service;
  const team = await createPrincipal(keys, { name: 'Team', roles: ['ADMIN'] });
  const granted = { roles: ['GUEST'], permissions: ['DOCKER:UPDATE_ANY', 'DISK:READ_ANY', 'API_KEY:CREATE_OWN'] };
  const description = 'Builds and deploys; ask Bea';
  const ci = await createPrincipal(
    keys,
    { name: 'CI deploy', description, ...granted, limits: ['100/m'], expiresIn: '30d' },
    team.principal,
  );
  await keys.create({ name: 'Preview 17', permissions: ['API_KEY:CREATE_OWN'], expiresIn: '7d' }, ci.principal);
  for (let hour = 0; hour < 30; hour += 1) {
    time.now += HOUR;
    for (let count = 0; count < (hour * 7) % 5; count += 1)
      await query(url, ci.secret, count === 3 ? '{ info { name } }' : '{ online me { name } }');
    await keys.finishActivity();
  }
  await keys.update(
    team.principal.apiKey.id,
    { permissions: ['API_KEY:CREATE_OWN', 'DISK:READ_ANY'], roles: ['GUEST'] },
    OPERATOR,
  );
  time.now += HOUR / 4;
  const { id } = ci.principal.apiKey;
  return { ...(await signedIn(visit, `keys/${id}`, { service, look })), id, ci };
}

describe('the page of a key in the console, in a browser,', () => {
  it(
    'is accessible, with its use and its rotation',
    inBrowser(async (visit) => {
      const { page, id, open, keys } = await visitUsedKey(visit);
      await isHeaded(page, /^CI deploy/);
      await takePicture(page, 'console-key', 790);
      await expectAccessible(page);
      await keys.rotate(id, { grace: '2h' }, OPERATOR);
      await page.getByRole('link', { name: 'Last 90 days' }).click();
      await page.waitForURL(/use=day/);
      const question = page.getByLabel('Check a permission');
      const pictured = async (text: string) => {
        await question.fill(text);
        return (await question.screenshot()).toString('base64');
      };
      assert.notEqual(await pictured('UPDATE_ANY'), await pictured('UPDATE ANY'));
      await question.fill('DOCKER:UPDATE_ANY');
      await page.getByRole('button', { name: 'Check' }).click();
      await page.getByText('Not allowed: DOCKER:UPDATE_ANY').waitFor();
      await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true");
      await expectAccessible(page);
      await open('keys/nothing').catch(() => {});
      visit.expectTrouble(/^status 404: GET \S+\/keys\/nothing$/);
      await isHeaded(page, 'Not found');
      await expectAccessible(page);
    }),
  );

  it(
    'is gone through by the keyboard as it is read, on a telephone, too',
    inBrowser(async (visit) => {
      const { page } = await visitUsedKey(visit, { width: 360 });
      const stops = (await new Keyboard(page).stops()).map((stop) => /"(.*)"/.exec(stop)![1]);
      const own = stops.slice(stops.indexOf('My key') + 1);
      assert.deepEqual(own.slice(0, 6), ['Edit', 'Rotate', 'Disable', 'Duplicate', 'Contain', 'Delete']);
      const rest = ['Last 48 hours', 'Last 90 days', 'Remove unused permissions…', 'Check a permission', 'Check'];
      assert.deepEqual(
        own.filter((name) => rest.includes(name!)),
        rest,
      );
    }),
  );

  for (const [words, look] of [
    ['by the mouse', {}],
    ['on a telephone, in the dark', { width: 320, colorScheme: 'dark' }],
    ['without JavaScript', { javaScript: false }],
  ] as const)
    it(
      `shows every holder their own key, and lets them rotate it if they may, ${words}`,
      inBrowser(async (visit) => {
        const person = { roles: ['GUEST'], permissions: ['API_KEY:UPDATE_OWN'] };
        const { page } = await signedIn(visit, '', { look, person });
        await isHeaded(page, /^Ada/);
        if (!('javaScript' in look)) await expectAccessible(page);
        await page.getByRole('link', { name: 'Rotate', exact: true }).click();
        await isHeaded(page, 'Rotate secret');
        await page.getByRole('button', { name: 'Rotate' }).click();
        await isHeaded(page, 'New secret of Ada');
        visit.isSecret(await page.getByLabel('Secret of Ada').inputValue());
      }),
    );
});
