import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { inBrowser } from '../../support/browser.ts';
import { expectAccessible } from '../../support/browser/accessible.ts';
import { addTeamKeys, signedIn, startConsole } from '../../support/browser/console-pages.ts';
import { WAYS } from '../../support/browser/hands.ts';
import { isHeaded, textOf } from '../../support/browser/page.ts';
import type { Look, Visit } from '../../support/browser/visit.ts';
import { createPrincipal } from '../../support/keys.ts';

/** A signed-in user on a team's list of keys, one of which has descendants. */
async function visitTree(visit: Visit, path: (ids: Record<string, string>) => string, look: Look = {}) {
  const service = await startConsole(visit);
  const ids = await addTeamKeys(service);
  const { keys, time } = service;
  const grants = { roles: ['GUEST'], permissions: ['API_KEY:CREATE_OWN', 'DOCKER:READ_ANY'] };
  const team = await createPrincipal(keys, { name: 'Platform team', ...grants });
  const release = await createPrincipal(keys, { name: 'Release', ...grants, expiresIn: '60d' }, team.principal);
  for (let number = 1; number <= 3; number += 1) {
    time.now += 1000;
    const fields = { name: `Build ${number}`, permissions: ['DOCKER:READ_ANY'], expiresIn: `${number}d` };
    await keys.create(fields, release.principal);
  }
  await keys.update(team.principal.apiKey.id, { permissions: ['API_KEY:CREATE_OWN'] }, OPERATOR);
  Object.assign(ids, { 'Platform team': team.principal.apiKey.id, Release: release.principal.apiKey.id });
  return { ids, ...(await signedIn(visit, path(ids), { service, look })) };
}

for (const [words, look, handsOn] of WAYS)
  describe(`several keys in the console, ${words}, are`, () => {
    it(
      'disabled together, and deleted once their number is typed',
      inBrowser(async (visit) => {
        const { page, keys, ids } = await visitTree(visit, () => 'keys?search=e&sort=name', look);
        const hands = handsOn(page);
        const select = (name: string) =>
          hands.tick(page.getByRole('checkbox', { name: `Select ${name}`, exact: true }));
        const press = (name: string) => hands.press(page.getByRole('button', { name, exact: true }));
        await select('CI deploy');
        await select('Platform team');
        if (look.javaScript !== false) assert.equal(await textOf(page.getByRole('status')), '2 selected:');
        await hands.look();
        await press('Disable…');
        await isHeaded(page, 'Disable 2 keys?');
        assert.match(
          await textOf(page.locator('.notice')),
          /^2 keys and 4 child keys: 6 in total, last used \S.* ago\./,
        );
        await hands.look();
        await page.goBack();
        await page.goForward();
        await isHeaded(page, 'Disable 2 keys?');
        await press('Disable 6 keys');
        await page.getByText('Keys disabled, with their child keys').waitFor();
        assert.notEqual((await keys.findById(ids['CI deploy']!, OPERATOR))!.disabledAt, null);

        await select('Platform team');
        await select('Old importer');
        await press('Delete…');
        await isHeaded(page, 'Delete 2 keys?');
        await hands.fill(page.getByLabel('Type 6, the number of keys'), '6');
        await press('Delete 6 keys');
        await isHeaded(page, 'Deleted');
        await hands.look();
        for (const name of ['Platform team', 'Release', 'Old importer'])
          assert.equal(await keys.findById(ids[name]!, OPERATOR), undefined, name);
      }),
    );

    it(
      'given an end together',
      inBrowser(async (visit) => {
        const { page, keys, ids, time } = await visitTree(visit, () => 'keys', look);
        const hands = handsOn(page);
        for (const name of ['CI deploy', 'Wall display'])
          await hands.tick(page.getByRole('checkbox', { name: `Select ${name}`, exact: true }));
        await hands.press(page.getByRole('button', { name: 'Set expiry…' }));
        await isHeaded(page, 'Set the expiry of 1 key?');
        await hands.choose(page.getByLabel('Expires', { exact: true }), '7 days');
        await hands.press(page.getByRole('button', { name: 'Show what changes' }));
        await isHeaded(page, 'Set the expiry of 2 keys?');
        await hands.look();
        await hands.press(page.getByRole('button', { name: 'Set the expiry' }));
        await page.getByText('Expiry set.').waitFor();
        const expiresAt = time.now + 7 * 86_400_000;
        for (const name of ['CI deploy', 'Wall display'])
          assert.equal((await keys.findById(ids[name]!, OPERATOR))!.expiresAt, expiresAt, name);
      }),
    );

    it(
      'seen in their tree, branch by branch',
      inBrowser(async (visit) => {
        const { page } = await visitTree(visit, (ids) => `keys/${ids['Platform team']}`, look);
        const hands = handsOn(page);
        const tree = page.getByRole('region', { name: 'Created by and child keys' });
        assert.match(await textOf(tree), /This one has 4 child keys\. .*Release.*3 child keys/s);
        await hands.press(tree.getByRole('link', { name: /3 child keys of Release: show/ }));
        await page.waitForURL(/open=/);
        assert.match(await textOf(tree), /Build 3.*Build 2.*Build 1/s);
        await hands.look();
        await page.goBack();
        await page.waitForURL((url) => !url.search.includes('open='));
        assert.doesNotMatch(await textOf(tree), /Build/);
        await page.goForward();
        await page.waitForURL(/open=/);
        await hands.press(tree.getByRole('link', { name: 'Build 2' }));
        await isHeaded(page, 'Build 2 active');
        assert.match(await textOf(tree), /^Created by and.*Platform team denies 1 permission.*Release.*Build 2/s);
        await hands.look();
      }),
    );
  });

describe('several keys in the console', () => {
  it(
    'are selected all at once, and none',
    inBrowser(async (visit) => {
      const { page } = await visitTree(visit, () => 'keys');
      const boxes = page.locator('input[name=id]');
      const all = page.getByRole('checkbox', { name: 'Select all on this page' });
      const disable = page.getByRole('button', { name: 'Disable…' });
      assert.equal(await disable.isDisabled(), true);
      await all.check();
      assert.equal(await boxes.filter({ has: page.locator(':scope:checked') }).count(), await boxes.count());
      assert.equal(await disable.isDisabled(), false);
      await boxes.first().uncheck();
      assert.equal(await all.isChecked(), false);
      await all.click();
      await all.click();
      assert.equal(await textOf(page.getByRole('status')), '0 selected');
      await expectAccessible(page);
    }),
  );
});
