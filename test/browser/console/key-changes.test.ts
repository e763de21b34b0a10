import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { inBrowser } from '../../support/browser.ts';
import { accessLevel, signedIn, startConsole } from '../../support/browser/console-pages.ts';
import { WAYS } from '../../support/browser/hands.ts';
import { isHeaded, problem, textOf } from '../../support/browser/page.ts';
import type { Look, Visit } from '../../support/browser/visit.ts';
import { createPrincipal } from '../../support/keys.ts';
import { query } from '../../support/server.ts';

const MINUTE = 60_000;

/** The page of a used key that has created another one. */
async function visitKey(visit: Visit, look: Look) {
  const service = await startConsole(visit);
  const { keys, time, url } = service;
  const ci = await createPrincipal(keys, { name: 'CI', roles: ['GUEST'], permissions: ['API_KEY:CREATE_OWN'] });
  visit.isSecret(ci.secret);
  await keys.create({ name: 'Beneath', permissions: ['API_KEY:CREATE_OWN'] }, ci.principal);
  const use = async (secret: string) => {
    const { status } = await query(url, secret, '{ online }');
    await keys.finishActivity();
    time.now += MINUTE;
    return status;
  };
  await use(ci.secret);
  const { id } = ci.principal.apiKey;
  const here = await signedIn(visit, `keys/${id}`, { service, look });
  const find = () => keys.findById(id, OPERATOR);
  return { ...here, ci, id, find, use, base: `keys/${id}` };
}

for (const [words, look, handsOn] of WAYS)
  describe(`a key in the console, ${words}, is`, () => {
    it(
      'edited, disabled and enabled',
      inBrowser(async (visit) => {
        const { page, find } = await visitKey(visit, look);
        const hands = handsOn(page);
        const button = (name: string) => page.getByRole('button', { name, exact: true });
        await hands.press(page.getByRole('link', { name: 'Edit' }));
        await isHeaded(page, 'Edit CI');
        await hands.fill(page.getByLabel('Description'), 'Builds and tests');
        if (look.javaScript !== false) await hands.fill(page.getByLabel('Filter the permissions'), 'api_key read');
        await hands.select(accessLevel(page, 'API_KEY', 'Custom'));
        await hands.tick(page.getByRole('checkbox', { name: 'API_KEY: read own' }));
        await hands.fill(page.getByLabel('Limits'), 'many');
        visit.expectTrouble(/^status 4\d\d: POST \S+\/edit$/);
        await hands.press(button('Save'));
        await page.getByRole('alert').waitFor();
        await hands.look();
        assert.match(await problem(page), /Fix 1 field: Limits/);
        await hands.skip(page.getByRole('link', { name: 'Skip the permissions' }));
        await hands.fill(page.getByLabel('Limits'), '100/m');
        await hands.press(button('Save'));
        await isHeaded(page, /^CI/);
        assert.equal(await textOf(page.getByRole('status')), 'Saved.');
        await hands.look();

        const { description, limits, permissions } = (await find())!;
        assert.deepEqual([description, limits], ['Builds and tests', ['100/m']]);
        assert.deepEqual(permissions.toSorted(), ['API_KEY:CREATE_OWN', 'API_KEY:READ_OWN']);
        await hands.press(button('Disable'));
        await button('Enable').waitFor();
        assert.notEqual((await find())!.disabledAt, null);
        await hands.press(button('Enable'));
        await button('Disable').waitFor();
        assert.equal((await find())!.disabledAt, null);
      }),
    );

    it(
      'narrowed to what it has used',
      inBrowser(async (visit) => {
        const { page, find } = await visitKey(visit, look);
        const hands = handsOn(page);
        await hands.press(page.getByRole('link', { name: 'Remove unused permissions…' }));
        await isHeaded(page, 'Remove unused permissions');
        await hands.look();
        await hands.press(page.getByRole('button', { name: 'Remove unused permissions' }));
        await isHeaded(page, /^CI/);
        assert.match(await textOf(page.getByRole('status').first()), /Unused permissions removed/);
        const { roles, permissions } = (await find())!;
        assert.deepEqual([roles, permissions.length], [[], 2]);
      }),
    );

    it(
      'rotated step by step, and rolled back',
      inBrowser(async (visit) => {
        const { page, base, open, ci, use } = await visitKey(visit, look);
        const hands = handsOn(page);
        const button = (name: string) => page.getByRole('button', { name, exact: true });
        const rotate = async (how?: string) => {
          await hands.press(page.getByRole('link', { name: 'Rotate' }));
          await isHeaded(page, 'Rotate secret');
          await hands.fill(page.getByLabel('Grace period'), '2h');
          if (how === undefined) await hands.look();
          else await hands.select(page.getByRole('radio', { name: how }));
          await hands.press(button('Rotate'));
          await isHeaded(page, 'New secret of CI');
          if (how === undefined) await hands.look();
          const secret = visit.isSecret(await page.getByLabel('Secret of CI').inputValue());
          await hands.press(page.getByRole('button', { name: 'I have stored it' }));
          await page.getByText('Rotation in progress').waitFor();
          return secret;
        };
        const secret = await rotate();
        assert.deepEqual([await use(secret), await use(ci.secret)], [200, 200]);
        await open(base);
        assert.match(
          await textOf(page.locator('main')),
          /The previous secret, svc_\w+…, expires in 2 hours|It is still in use/,
        );
        await hands.press(page.getByRole('link', { name: 'Finish it or roll it back' }));
        await hands.look();
        await hands.press(button('Finish now'));
        await page.getByText('Rotation finished').waitFor();
        assert.deepEqual([await use(secret), await use(ci.secret)], [200, 401]);

        const another = await rotate('On first use of the new secret');
        await hands.press(page.getByRole('link', { name: 'Finish it or roll it back' }));
        await hands.press(button('Start the grace period'));
        await page.getByText('has started').waitFor();
        await hands.press(page.getByRole('link', { name: 'Finish it or roll it back' }));
        await hands.press(button('Roll back'));
        await page.getByText('Rotation rolled back').waitFor();
        assert.deepEqual([await use(secret), await use(another)], [200, 401]);
      }),
    );

    it(
      'deleted, once its name is typed, with its child keys',
      inBrowser(async (visit) => {
        const { page, find, keys } = await visitKey(visit, look);
        const hands = handsOn(page);
        const confirm = page.getByLabel('Type the name of the key to confirm');
        const button = page.getByRole('button', { name: 'Delete 2 keys', exact: true });
        await hands.press(page.getByRole('link', { name: 'Delete', exact: true }));
        await isHeaded(page, 'Delete CI?');
        assert.match(await textOf(page.locator('main')), /This deletes 2 keys, last used .*Beneath/);
        visit.expectTrouble(/^status 422: POST \S+\/delete$/);
        await hands.fill(confirm, 'ci');
        await hands.press(button);
        await page.getByRole('alert').waitFor();
        assert.ok(await find());
        await hands.look();

        await hands.fill(confirm, 'CI');
        await hands.press(button);
        await isHeaded(page, 'Deleted');
        await hands.look();
        assert.equal(await find(), undefined);
        assert.equal(await keys.findByName('Beneath', OPERATOR), undefined);
      }),
    );
  });
