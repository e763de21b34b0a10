import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { startConsoleService, type Visitor, visitorWith } from './support/console.ts';
import { createPrincipal } from '../../support/keys.ts';
import type { TestService } from '../../support/server.ts';

describe('keys that are selected in the console', () => {
  let test: TestService;
  let visitor: Visitor;
  let ids: Record<string, string>;
  beforeEach(async () => {
    test = await startConsoleService();
    ({ visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] }));
    const { principal } = await createPrincipal(test.keys, { name: 'Team', roles: ['ADMIN'] });
    const build = await createPrincipal(test.keys, { name: 'Build', roles: ['GUEST'] }, principal);
    const other = await test.keys.create({ name: 'Other', roles: ['GUEST'], expiresIn: '5d' }, OPERATOR);
    ids = { Team: principal.apiKey.id, Build: build.principal.apiKey.id, Other: other.apiKey.id };
  });
  afterEach(() => test.stop());

  /** The page that previews a change of these keys. */
  const plan = (change: string, names: string[], more = '') =>
    visitor.open(`keys/selected?${names.map((name) => `id=${ids[name] ?? name}&`).join('')}change=${change}${more}`);
  const find = (name: string) => test.keys.findById(ids[name]!, OPERATOR);

  it('can be ticked where they may be changed, and nowhere else', async () => {
    const { html, text } = await visitor.open('keys');
    assert.match(
      html,
      new RegExp(`<input type="checkbox" name="id" value="${ids['Team']}" aria-label="Select Team"/>`),
    );
    assert.match(text, /Selected keys: Disable… Set expiry… Delete…/);
    const { visitor: reader } = await visitorWith(test, { name: 'Reader', permissions: ['API_KEY:READ_ANY'] });
    assert.doesNotMatch((await reader.open('keys')).html, /checkbox|Disable…/);
  });

  it('are disabled together, after the exact number was shown', async () => {
    await test.keys.setEnabled(ids['Other']!, false, OPERATOR);
    const page = await plan('DISABLE', ['Team', 'Other']);
    assert.match(page.text, /Disable 1 key\? 1 key and 1 child key : 2 in total, never used\. /);
    assert.match(page.text, /1 key Team with 1 child key active never used 1 key already disabled Other/);
    const done = await visitor.submit('keys/selected');
    assert.equal(done.path, 'keys?done=DISABLE');
    assert.match(done.text, /Keys disabled, with their child keys/);
    assert.notEqual((await find('Team'))!.disabledAt, null);
  });

  it('get an expiry, but none gets a later one', async () => {
    const page = await plan('EXPIRE', ['Team', 'Other', 'Build']);
    assert.match(page.text, /Set the expiry of 2 keys\? .*2 keys , never used\. .*1 key already expires earlier Other/);
    const sooner = await visitor.submit('keys/selected', { expiry: '1d' });
    assert.match(sooner.text, /Set the expiry of 3 keys\?/);
    const done = await visitor.submit('keys/selected#confirm');
    assert.equal(done.path, 'keys?done=EXPIRE');
    const day = test.time.now + 86_400_000;
    for (const name of ['Team', 'Other', 'Build']) assert.equal((await find(name))!.expiresAt, day, name);
  });

  it('are counted correctly if none would change', async () => {
    const page = await plan('EXPIRE', ['Other']);
    assert.match(page.text, /Set the expiry of 1 key\? .*1 key already expires earlier Other .*None of these keys/);
    assert.doesNotMatch(page.text, /0 keys/);
  });

  it('report a wrong expiry', async () => {
    const page = await plan('EXPIRE', ['Team'], '&expiry=date&date=2020-01-01');
    assert.equal(page.status, 422);
    assert.match(page.text, /Choose a day in the future/);
  });

  it('are deleted together, once their number was typed', async () => {
    const page = await plan('DELETE', ['Team', 'Other']);
    assert.match(
      page.text,
      /Delete 2 keys\? 2 keys and 1 child key : 3 in total, never used\. .* You cannot undo this\./,
    );
    const refused = await visitor.submit('keys/selected', { confirm: '2' });
    assert.deepEqual([refused.status, /Type 3, the number of keys\./.test(refused.text)], [422, true]);
    const done = await visitor.submit('keys/selected', { confirm: '3' });
    assert.match(done.text, /Deleted 3 keys\./);
    for (const name of ['Team', 'Build', 'Other']) assert.equal(await find(name), undefined, name);
  });

  it('stay as they are if there are other child keys than those shown', async () => {
    await plan('DELETE', ['Team', 'Other']);
    const { principal } = await visitorWith(test, { name: 'Bea', roles: ['ADMIN'] });
    const team = await test.keys.findByName('Team', OPERATOR);
    assert.ok(team && principal);
    await test.keys.delete([ids['Build']!], OPERATOR);
    const page = await visitor.submit('keys/selected', { confirm: '3' });
    assert.equal(page.status, 409);
    assert.match(page.text, /Nothing was changed: .*Delete 2 keys\?|Delete 2 keys\? Nothing was changed/);
    assert.ok(await find('Team'));
  });

  it('are separated from keys that the person may not change', async () => {
    const may = ['API_KEY:READ_ANY', 'API_KEY:UPDATE_OWN', 'API_KEY:CREATE_OWN', 'ME:READ_OWN'];
    const { visitor: bea, principal } = await visitorWith(test, { name: 'Bea', permissions: may });
    const { apiKey: own } = await test.keys.create({ name: 'Of Bea', permissions: ['ME:READ_OWN'] }, principal);
    const page = await bea.open(`keys/selected?id=${own.id}&id=${ids['Team']}&change=DISABLE`);
    assert.match(
      page.text,
      /Disable 1 key\? .*1 key that you are not allowed to change this way Team .*API_KEY:UPDATE_ANY/,
    );
    await bea.submit('keys/selected');
    assert.notEqual((await test.keys.findById(own.id, OPERATOR))!.disabledAt, null);
    assert.equal((await find('Team'))!.disabledAt, null);
  });

  it('are asked for if there are none, and unknown ids select no key', async () => {
    const page = await visitor.open('keys/selected?change=DELETE');
    assert.deepEqual([page.status, /No keys selected\./.test(page.text)], [422, true]);
    const nobody = await plan('DELETE', ['00000000-0000-4000-8000-000000000000']);
    assert.deepEqual([nobody.status, /<form method="post" action="[^"]*selected/.test(nobody.html)], [200, false]);
  });
});
