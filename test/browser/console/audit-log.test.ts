import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { inBrowser } from '../../support/browser.ts';
import { expectAccessible } from '../../support/browser/accessible.ts';
import { addTeamKeys, signedIn, startConsole } from '../../support/browser/console-pages.ts';
import { Keyboard } from '../../support/browser/keyboard.ts';
import { isHeaded, textOf } from '../../support/browser/page.ts';
import type { Look, Visit } from '../../support/browser/visit.ts';
import { query } from '../../support/server.ts';

/** A team's log at noon, with a refusal at ten and a change at eleven. */
async function openLog(visit: Visit, look: Look = {}) {
  const service = await startConsole(visit);
  const ids = await addTeamKeys(service);
  service.time.now = Date.UTC(2030, 0, 1, 13, 30);
  await query(service.url, 'svc_nonsense', '{ online }');
  await service.keys.finishActivity();
  service.time.now = Date.UTC(2030, 0, 1, 14, 30);
  await service.keys.update(ids['CI deploy']!, { description: 'Deploys' }, OPERATOR);
  return { ...service, ...(await signedIn(visit, 'audit-log', { service, look })) };
}

const bar = (page: Page, name: RegExp) => page.getByRole('link', { name });
const sentences = (page: Page) => page.locator('.log tbody tr:not(.day) td').allInnerTexts();

describe('the audit log of the console, in a browser', () => {
  for (const [words, look] of [
    ['', {}],
    [' on a telephone, in the dark', { width: 360, colorScheme: 'dark' }],
    [' without JavaScript', { javaScript: false }],
  ] as const)
    it(
      `is narrowed to an hour by its bar${words}, and back`,
      inBrowser(async (visit) => {
        const { page } = await openLog(visit, look);
        if (!('javaScript' in look)) await expectAccessible(page);
        await bar(page, /^Jan 1, 13:00/)
          .first()
          .click();
        await page.waitForURL(/since=2030-01-01T13%3A00&until=2030-01-01T14%3A00/);
        assert.deepEqual(await sentences(page), ['A request was refused · malformed from 127.0.0.1']);
        if (!('javaScript' in look)) await expectAccessible(page);
        assert.equal(await page.getByLabel('From, UTC').inputValue(), '2030-01-01T13:00');
        await page.goBack();
        await page.getByText('last 24 hours').waitFor();
        await page.goForward();
        await page.getByText('Jan 1, 13:00 to Jan 1, 14:00').waitFor();
        await page.getByRole('link', { name: '7 days' }).click();
        await page.getByText('last 7 days').waitFor();
        // The table has the same links.
        await page.getByText('Show as table').click();
        await page.getByRole('table').getByRole('link', { name: 'Jan 1, 12:00' }).click();
        await page.waitForURL(/since=2030-01-01T12%3A00&until=2030-01-01T18%3A00/);
        assert.equal((await sentences(page)).length, 3);
      }),
    );

  it(
    'is narrowed to several hours by dragging over their bars',
    inBrowser(async (visit) => {
      const { page } = await openLog(visit);
      const { x, y, width, height } = (await page.locator('[data-histogram] svg').boundingBox())!;
      const middle = (index: number) => [x + (width * (index + 0.5)) / 24, y + height / 2] as const;
      // The last of the 24 bars is 14:00.
      await page.mouse.move(...middle(23));
      await page.mouse.down();
      await page.mouse.move(...middle(22));
      await page.mouse.move(...middle(21));
      assert.equal(await page.locator('svg .chosen').count(), 3);
      await page.mouse.up();
      await page.waitForURL(/since=2030-01-01T12%3A00&until=2030-01-01T15%3A00/);
      await page.getByText('Jan 1, 12:00 to Jan 1, 15:00').waitFor();
    }),
  );

  it(
    'is narrowed by the keyboard alone: one stop for all bars, arrows between them',
    inBrowser(async (visit) => {
      const { page } = await openLog(visit, { width: 320 });
      const keyboard = new Keyboard(page);
      await keyboard.tabTo(page.getByRole('link', { name: '30 days' }));
      assert.match((await keyboard.tab())!, /^a "Jan 1, 14:00, 2 entries"/);
      assert.match((await keyboard.tab())!, /Show as table/);
      await keyboard.tab('Shift+Tab');
      await keyboard.press('ArrowLeft');
      assert.match(await page.locator(':focus').evaluate((bar) => bar.getAttribute('aria-label')!), /^Jan 1, 13:00/);
      await keyboard.press('Shift+ArrowRight');
      assert.equal(await page.locator('svg .chosen').count(), 2);
      await keyboard.press('Escape');
      assert.equal(await page.locator('svg .chosen').count(), 0);
      await keyboard.press('Shift+ArrowLeft');
      await keyboard.press('Enter');
      await page.waitForURL(/since=2030-01-01T13%3A00&until=2030-01-01T15%3A00/);
    }),
  );

  it(
    'is filtered by its outcome, and saved as a file',
    inBrowser(async (visit) => {
      const { page } = await openLog(visit);
      await page.getByLabel('Outcome').selectOption('Refused');
      await page.getByRole('button', { name: 'Filter' }).click();
      await page.waitForURL(/outcome=REFUSED/);
      await isHeaded(page, 'Audit log');
      for (const [name, start] of [
        ['Export CSV', '"number","at"'],
        ['Export JSON lines', '{"number":'],
      ] as const) {
        const downloading = page.waitForEvent('download');
        await page.getByRole('link', { name }).click();
        const file = readFileSync(await (await downloading).path(), 'utf8');
        assert.ok(file.startsWith(start), file);
        assert.match(file, /REFUSE.*malformed/);
      }
      assert.match(await textOf(page.locator('.chain')), /^Verified up to 14:30 UTC$/);
    }),
  );
});
