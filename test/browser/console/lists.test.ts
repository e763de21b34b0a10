import assert from 'node:assert/strict';
import { loadConfig } from '../../../src/config/load-config.ts';
import { additionsIn } from '../../../src/service/configured-server.ts';
import { inBrowser } from '../../support/browser.ts';
import { expectAccessible } from '../../support/browser/accessible.ts';
import { addTeamKeys, signedIn, startConsole } from '../../support/browser/console-pages.ts';
import { Keyboard } from '../../support/browser/keyboard.ts';
import { isHeaded, problem, textOf } from '../../support/browser/page.ts';
import type { Look, Visit } from '../../support/browser/visit.ts';
import { configFile } from '../../support/config-file.ts';
import { ROUTES } from '../../support/configured-service.ts';

/** A signed-in user of a team's service, with routes. */
async function visitTeam(visit: Visit, path: string, look: Look = {}) {
  const config = await loadConfig({ file: configFile(ROUTES) });
  const service = await startConsole(visit, { ...(await additionsIn(config, {})), app: { config } });
  const ids = await addTeamKeys(service);
  return { ids, ...(await signedIn(visit, path, { service, look })) };
}

describe('the lists of the console, in a browser', () => {
  it(
    'are accessible, and lead to each other by the mouse',
    inBrowser(async (visit) => {
      const { page } = await visitTeam(visit, 'keys');
      for (const title of ['Keys', 'Audit log', 'Routes', 'Limits', 'Health']) {
        await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: title }).click();
        await isHeaded(page, title);
        assert.equal(await page.locator('nav [aria-current=page]').innerText(), title);
        await expectAccessible(page);
      }
    }),
  );

  it(
    'are accessible where they are empty, and where something is wrong',
    inBrowser(async (visit) => {
      const { page, open } = await signedIn(visit, 'keys?search=nobody', { service: await startConsole(visit) });
      await expectAccessible(page);
      visit.expectTrouble(/^status 400: GET /);
      visit.expectTrouble(/^console warning: The specified value "yesterday" does not conform/);
      await open('audit-log?since=yesterday');
      await problem(page);
      await expectAccessible(page);
      await open('routes?url=nonsense');
      await problem(page);
      await expectAccessible(page);
    }),
  );

  it(
    'fit on a telephone, however long names, words and routes are',
    inBrowser(async (visit) => {
      const resource = `VERY_${'LONG'.repeat(10)}`;
      const path = `/${'long'.repeat(40)}/**`;
      const yaml = `resources: [${resource}]\nroutes: [{ host: "*", path: ${path}, allow: ${resource}:READ_ANY }]\n`;
      const config = await loadConfig({ file: configFile(yaml) });
      const service = await startConsole(visit, { ...(await additionsIn(config, {})), app: { config } });
      const person = { name: 'W'.repeat(100), description: 'x'.repeat(1000), permissions: [`${resource}:READ_ANY`] };
      const { page, open } = await signedIn(visit, 'keys', { service, person });
      for (const path of ['keys', 'audit-log', `routes?url=https://x.example/${'long'.repeat(40)}/x`]) {
        await open(path);
        await expectAccessible(page);
      }
    }),
  );

  for (const [words, look] of [
    ['by the mouse', {}],
    ['on a telephone, in the dark', { width: 360, colorScheme: 'dark' }],
    ['without JavaScript', { javaScript: false }],
  ] as const)
    it(
      `are searched ${words}`,
      inBrowser(async (visit) => {
        const { page, open } = await visitTeam(visit, 'keys', look);
        await page.getByRole('searchbox').fill('deploy');
        await page.getByRole('button', { name: 'Search' }).click();
        await page.waitForURL(/search=deploy/);
        assert.deepEqual(await page.getByRole('rowheader').getByRole('link').allInnerTexts(), ['CI deploy']);
        await page.getByRole('searchbox').fill('');
        await page.getByLabel('Status').selectOption('disabled');
        await page.getByRole('button', { name: 'Search' }).click();
        await page.waitForURL(/DISABLED/);
        assert.deepEqual(await page.getByRole('rowheader').getByRole('link').allInnerTexts(), ['Old importer']);

        await open('audit-log');
        await page.getByLabel('Key', { exact: true }).fill('Old importer');
        await page.getByLabel('Action').selectOption('disable');
        await page.getByLabel('From, UTC').fill('2030-01-01T00:00');
        await page.getByRole('button', { name: 'Filter' }).click();
        await page.waitForURL(/since=2030-01-01/);
        assert.match(
          await textOf(page.locator('.log tbody')),
          /^\w+day \S.* ago tester disabled Old importer Details$/,
        );

        await open('routes');
        await page.getByLabel('Method').selectOption('POST');
        await page.getByLabel('URL').fill('https://g.example/api/boards/7');
        await page.getByLabel('Key').fill('Wall display');
        await page.getByRole('button', { name: 'Try it' }).click();
        await page.waitForURL(/url=/);
        assert.match(await textOf(page.getByRole('status')), /403 Forbidden.* with the key Wall display/);
        await page.getByRole('link', { name: 'Open the key' }).waitFor();
        await page.getByLabel('URL').fill('');
        await page.getByRole('button', { name: 'Try it' }).click();
        await page.waitForURL(/url=&/);
        assert.match(await textOf(page.getByRole('row').nth(1)), /Allowed/);
        await page.getByRole('link', { name: 'Keys that can use route 1' }).click();
        await isHeaded(page, 'Keys that can use route 1');
        if (!('javaScript' in look)) await expectAccessible(page);
        await page.getByRole('link', { name: 'Wall display' }).waitFor();
        await page.goBack();
        await isHeaded(page, 'Routes');
      }),
    );

  it(
    'are looked through on a slow connection, with Back and Forward',
    inBrowser(async (visit) => {
      const { page, context, open } = await visitTeam(visit, 'keys');
      const network = await context.newCDPSession(page);
      const slow = { offline: false, latency: 500, downloadThroughput: -1, uploadThroughput: -1 };
      await network.send('Network.emulateNetworkConditions', slow);
      const names = page.getByRole('rowheader').getByRole('link');
      await page.getByRole('searchbox').fill('deploy');
      await page.getByRole('button', { name: 'Search' }).click();
      await page.waitForURL(/search=deploy/);
      await names.filter({ hasText: 'CI deploy' }).click();
      await isHeaded(page, /^CI deploy/);
      await page.goBack();
      await isHeaded(page, 'Keys');
      assert.deepEqual(await names.allInnerTexts(), ['CI deploy']);
      await page.goBack();
      await page.getByRole('link', { name: 'Old importer' }).waitFor();
      await page.goForward();
      await page.waitForURL(/search=deploy/);
      assert.deepEqual(await names.allInnerTexts(), ['CI deploy']);
      await open('audit-log');
      await page.getByLabel('Action').selectOption('disable');
      await page.getByRole('button', { name: 'Filter' }).click();
      await page.waitForURL(/action=DISABLE/);
      await page.locator('.log tbody').getByText('Old importer').first().waitFor();
      await open('routes');
      await page.getByLabel('URL').fill('https://g.example/api/boards/7');
      await page.getByRole('button', { name: 'Try it' }).click();
      await page.getByRole('status').waitFor();
      await page.goBack();
      await page.waitForURL(/\/routes$/);
      await isHeaded(page, 'Routes');
    }),
  );

  it(
    'are used by the keyboard alone: a slash leads to the search, Tab through all that can be used, as it is read',
    inBrowser(async (visit) => {
      const { page, open } = await visitTeam(visit, 'keys');
      const keyboard = new Keyboard(page);
      // The name of a select is its label followed by its options.
      const stops = (await keyboard.stops()).map((stop) =>
        stop.replace(/^\w+ /, '').replace(/ (Any|Any time|127\.0\.0\.1:\d+)\b.*/, '"'),
      );
      const pages = ['Home', 'Keys', 'Approvals', 'Audit log', 'Routes', 'Limits', 'Health', 'My key'];
      const around = ['Skip to the content', 'svc-api', 'Sign out', ...pages];
      const names = ['Visit of Bea', 'Old importer', 'Wall display', 'CI deploy', 'Nightly backup', 'Ada'];
      const filters = ['Search', 'Status', 'Role', 'Expires', 'Used', 'Owner', 'Tags', 'Search'];
      const columns = ['Select all on this page', 'Name', 'Last used', 'Expires', 'Created ↓'];
      const rows = names.flatMap((name) => [`Select ${name}`, name]);
      const own = ['New key', ...filters, ...columns, ...rows];
      assert.deepEqual(stops.toSorted(), [...around, ...own].map((name) => `"${name}"`).toSorted());
      assert.deepEqual(
        stops.slice(0, around.length),
        around.map((name) => `"${name}"`),
      );
      await keyboard.press('/');
      await keyboard.type('a/b');
      assert.equal(await page.getByRole('searchbox').inputValue(), 'a/b');
      for (const letter of ['a/b', 'wall']) {
        await page.getByRole('searchbox').selectText();
        await keyboard.type(letter);
      }
      await keyboard.press('Enter');
      await page.waitForURL(/search=wall/);
      await keyboard.tabTo(page.getByRole('link', { name: 'Wall display' }));
      await keyboard.press('Enter');
      await isHeaded(page, /^Wall display/);

      for (const [path, label] of [
        ['audit-log', 'Key'],
        ['routes', 'URL'],
      ] as const) {
        await open(path);
        await keyboard.press('/');
        await keyboard.type('https://g.example/api');
        assert.equal(await page.getByLabel(label, { exact: true }).inputValue(), 'https://g.example/api');
        await keyboard.press('Enter');
        await page.waitForURL(/g\.example/);
        await keyboard.stops();
      }
    }),
  );

  it(
    'are skipped to, past the navigation',
    inBrowser(async (visit) => {
      const { page } = await visitTeam(visit, 'keys', { width: 360 });
      const keyboard = new Keyboard(page);
      assert.equal(await keyboard.tab(), 'a "Skip to the content"');
      await keyboard.press('Enter');
      assert.equal(await keyboard.tab(), 'a "New key"');
    }),
  );
});
