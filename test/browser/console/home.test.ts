import assert from 'node:assert/strict';
import { loadConfig } from '../../../src/config/load-config.ts';
import { writeUses } from '../../../src/keys/authentication/activity.ts';
import { additionsIn } from '../../../src/service/configured-server.ts';
import { inBrowser } from '../../support/browser.ts';
import { expectAccessible } from '../../support/browser/accessible.ts';
import { addTeamKeys, signedIn, startConsole } from '../../support/browser/console-pages.ts';
import { Keyboard } from '../../support/browser/keyboard.ts';
import { isHeaded, textOf } from '../../support/browser/page.ts';
import { takePicture } from '../../support/browser/picture.ts';
import type { Look, Visit } from '../../support/browser/visit.ts';
import { configFile } from '../../support/config-file.ts';
import { ROUTES } from '../../support/configured-service.ts';

const HOUR = 3_600_000;

/** A signed-in user on the home page of a team's service. */
async function visitHome(visit: Visit, look: Look = {}) {
  const config = await loadConfig({ file: configFile(ROUTES) });
  const service = await startConsole(visit, { ...(await additionsIn(config, {})), app: { config } });
  const ids = await addTeamKeys(service);
  const { store, time } = service;
  for (const [index, name] of ['CI deploy', 'Nightly backup', 'Wall display'].entries()) {
    const hours = Array.from({ length: 24 }, (_, age) => ({
      start: time.now - (time.now % HOUR) - (23 - age) * HOUR,
      accepted: 40 + ((age * 7 + index * 11) % 60),
      forbidden: age % 9 === index ? 3 : 0,
      limited: age === 15 ? 5 : 0,
      refused: age === 4 ? 6 : 0,
    }));
    const usage = { id: ids[name]!, uses: 2000, lastUsedAt: time.now - index * 60_000, previousLastUsedAt: null };
    await store.repository.write(
      (writer) => writeUses(writer, [{ ...usage, permissions: [], hours }], service.options.listeners),
      {
        counts: true,
      },
    );
  }
  return { ids, ...(await signedIn(visit, '', { service, look })) };
}

describe('the home page of the console, in a browser', () => {
  it(
    'leads to each list that it counts, which has as many, and back again',
    inBrowser(async (visit) => {
      const { page } = await visitHome(visit);
      await expectAccessible(page);
      await takePicture(page, 'console-home', 860);
      const figures = page.locator('.figures a');
      const names = await figures.allInnerTexts();
      assert.equal(names.length, 6);
      for (const [index, name] of names.entries()) {
        await figures.nth(index).click();
        await page.waitForURL(/(keys|audit-log|requests)/);
        const [, count = ''] = /^(\d+)\s+(?:keys|expiring soon|never used)/.exec(name) ?? [];
        if (count !== '') assert.equal(await page.getByRole('rowheader').count(), Number(count), name);
        await page.goBack();
        await isHeaded(page, 'Home');
      }
      await page.goForward();
      await isHeaded(page, 'Approvals');
    }),
  );

  it(
    'has the numbers of each column as a tooltip, and in a table',
    inBrowser(async (visit) => {
      const { page } = await visitHome(visit);
      const plot = page.locator('.plot');
      const column = plot.locator('svg[role=img]').first().locator('.column').nth(4);
      const said = (await column.locator('title').textContent())!;
      assert.match(said, /^2029-12-31 17:00 UTC: \d+ accepted, 0 forbidden, 0 limited, 18 refused$/);
      await plot.locator('summary').click();
      const [, accepted] = /: (\d+) accepted/.exec(said)!;
      assert.match(await textOf(plot.locator('table')), new RegExp(`2029-12-31 17:00 ${accepted} 0 0 18`));
      await expectAccessible(page);
    }),
  );

  for (const [words, look] of [
    ['on a telephone, in the dark', { width: 360, colorScheme: 'dark' }],
    ['without JavaScript', { javaScript: false }],
  ] as const)
    it(
      `is accessible ${words}, and leads on`,
      inBrowser(async (visit) => {
        const { page } = await visitHome(visit, look);
        if (look !== undefined && !('javaScript' in look)) await expectAccessible(page);
        await page.getByRole('link', { name: /never used/ }).click();
        await page.waitForURL(/used=never/);
      }),
    );

  it(
    'is used by the keyboard alone',
    inBrowser(async (visit) => {
      const { page } = await visitHome(visit);
      const keyboard = new Keyboard(page);
      await keyboard.tabTo(page.getByRole('link', { name: /expiring soon/ }));
      await keyboard.press('Enter');
      await page.waitForURL(/ends=14d/);
    }),
  );
});
