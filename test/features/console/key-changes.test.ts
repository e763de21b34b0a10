import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { NewKey } from '../../../src/keys/key/key-change.ts';
import { startConsoleService, Visitor, visitorWith } from './support/console.ts';
import { authenticate, createPrincipal } from '../../support/keys.ts';
import { query, type TestService } from '../../support/server.ts';

const ADA = { name: 'Ada', roles: ['ADMIN'] };
const MINUTE = 60_000;

describe('changing a key in the console', () => {
  let test: TestService;
  let visitor: Visitor;
  let ada: string;
  beforeEach(async () => {
    test = await startConsoleService();
    ({ visitor, secret: ada } = await visitorWith(test, ADA));
  });
  afterEach(() => test.stop());

  const create = async (input: Partial<NewKey> = {}) =>
    (await test.keys.create({ name: 'CI', roles: ['GUEST'], ...input }, OPERATOR)).apiKey.id;
  const find = (id: string) => test.keys.findById(id, OPERATOR);

  it('needs forms of its own pages, and never happens by opening a page', async () => {
    const id = await create();
    const before = await find(id);
    for (const path of ['edit', 'delete', 'disable', 'rotation', 'narrow']) await visitor.open(`keys/${id}/${path}`);
    for (const path of ['enable', 'rotation/finish', 'rotation/activate', 'rotation/roll-back'])
      assert.equal((await visitor.open(`keys/${id}/${path}`)).status, 405);
    for (const path of ['edit', 'delete', 'disable', 'enable', 'rotation', 'rotation/finish', 'narrow']) {
      const { status } = await fetch(`${test.url}/console/keys/${id}/${path}`, {
        method: 'POST',
        headers: { cookie: visitor.cookie!, 'sec-fetch-site': 'same-site' },
        body: new URLSearchParams({ name: 'CI' }),
      });
      assert.equal(status, 403, path);
    }
    assert.deepEqual(await find(id), before);
  });

  it("warns before disabling one's own key, and signs out", async () => {
    const result = await authenticate(test.keys, ada);
    assert.ok('principal' in result);
    const page = await visitor.open(`keys/${result.principal.apiKey.id}`);
    assert.doesNotMatch(page.html, /<form[^>]*disable/);
    assert.match((await visitor.open(`keys/${result.principal.apiKey.id}/disable`)).text, /you will be signed out/);
    assert.match((await visitor.submit('/disable')).path, /^sign-in/);
  });

  it('warns if the person could not enable it again', async () => {
    const permissions = ['API_KEY:UPDATE_ANY', 'API_KEY:READ_ANY'] as const;
    const { visitor: bea } = await visitorWith(test, { name: 'Bea', permissions });
    const id = await create();
    const { html } = await bea.open(`keys/${id}`);
    assert.match(html, /<a class="button" href="[^"]*\/disable">Disable/);
    assert.match(
      (await bea.open(`keys/${id}/disable`)).text,
      /You cannot enable it again: A key cannot grant more than it holds: your key lacks ME:READ_OWN/,
    );
    await bea.submit('/disable');
    assert.notEqual((await find(id))?.disabledAt, null);
  });

  describe('on the page that edits it', () => {
    it('changes only the edited fields', async () => {
      const id = await create({ expiresIn: '30d', limits: ['9/m', '100/d'], permissions: ['DOCKER:READ_ANY'] });
      const before = await find(id);
      await visitor.open(`keys/${id}/edit`);
      assert.match((await visitor.submit('/edit')).path, /keys\/[\w-]+$/);
      assert.deepEqual(await find(id), before);
      await visitor.open(`keys/${id}/edit`);
      const { text } = await visitor.submit('/edit', { description: 'Builds', allowFrom: '10.0.0.0/8, ::1' });
      assert.match(text, /Saved\. .* Builds .*10\.0\.0\.0\/8, ::1/);
      assert.deepEqual(await find(id), { ...before, description: 'Builds', allowFrom: ['10.0.0.0/8', '::1'] });
    });

    it('changes and removes the owner and the tags, and reports errors in them', async () => {
      const id = await create();
      await visitor.open(`keys/${id}/edit`);
      const { text, html } = await visitor.submit('/edit', { owner: 'Payments team', tags: 'team=pay; env=prod' });
      assert.match(text, /Owner Payments team Tags env=prod team=pay/);
      assert.match(html, /href="[^"]*keys\?by=Payments%20team"/);
      assert.match(html, /href="[^"]*keys\?tag=env%3Dprod"/);
      await visitor.open(`keys/${id}/edit`);
      assert.match((await visitor.submit('/edit', { tags: 'env' })).text, /"env" is not a tag\. Write key=value/);
      await visitor.submit('/edit', { owner: '', tags: '' });
      const { owner, tags } = (await find(id))!;
      assert.deepEqual([owner, tags], [null, []]);
    });

    it('shows, changes and removes the metadata, and reports errors in it', async () => {
      const id = await create({ metadata: { plan: 'pro' } });
      assert.match((await visitor.open(`keys/${id}`)).text, /Metadata \{"plan":"pro"\}/);
      await visitor.open(`keys/${id}/edit`);
      const { text } = await visitor.submit('/edit', { metadata: '{plan}' });
      assert.match(text, /The metadata must be a JSON object/);
      assert.deepEqual((await find(id))!.metadata, { plan: 'pro' });
      await visitor.submit('/edit', { metadata: '{"plan": {"is": "free"}}' });
      assert.deepEqual((await find(id))!.metadata, { plan: { is: 'free' } });
      await visitor.open(`keys/${id}/edit`);
      await visitor.submit('/edit', { metadata: '' });
      assert.equal((await find(id))!.metadata, null);
    });

    it('takes away and adds grants, limits, networks, and the end', async () => {
      const id = await create({ limits: ['9/m'], allowFrom: ['10.0.0.0/8'], expiresIn: '30d' });
      await visitor.open(`keys/${id}/edit`);
      await visitor.submit('/edit', {
        role: [],
        permission: ['DOCKER:READ_ANY'],
        limits: '',
        allowFrom: '',
        expires: '',
      });
      const { roles, permissions, limits, allowFrom, expiresAt } = (await find(id))!;
      assert.deepEqual([roles, permissions, limits, allowFrom, expiresAt], [[], ['DOCKER:READ_ANY'], [], null, null]);
      await visitor.open(`keys/${id}/edit`);
      await visitor.submit('/edit', { expires: '2d' });
      assert.equal((await find(id))!.expiresAt, test.time.now + 2 * 86_400_000);
    });

    it('reports errors at each field, and keeps the input', async () => {
      const id = await create();
      await create({ name: 'Taken' });
      await visitor.open(`keys/${id}/edit`);
      const wrongAt = (name: string) =>
        new RegExp(`<p id="${name}-problem" class="wrong">([^<]*)`).exec(visitor.page!.html)?.[1];
      const { status } = await visitor.submit('/edit', { name: 'a/b', limits: 'x', allowFrom: '300.1.1.1' });
      assert.equal(status, 400);
      assert.match(`${wrongAt('name')}`, /may only contain letters, digits and spaces/);
      assert.match(`${wrongAt('limits')}`, /is not a limit/);
      assert.match(`${wrongAt('allowFrom')}`, /300\.1\.1\.1/);
      assert.match(visitor.page!.html, /role="alert"/);
      assert.match(visitor.page!.html, /value="a\/b"/);
      await visitor.submit('/edit', { name: 'CI', limits: '', allowFrom: '', expires: 'soon' });
      assert.match(`${wrongAt('expires')}`, /&quot;soon&quot; is not a duration/);
      await visitor.submit('/edit', { expires: '', name: 'Taken' });
      assert.match(`${wrongAt('name')}`, /already exists/);
      await visitor.submit('/edit', { name: 'CI', role: [], permission: [] });
      assert.match(visitor.page!.text, /at least one role or permission/i);
      assert.equal((await find(id))!.name, 'CI');
    });

    it('does not undo what others have changed meanwhile', async () => {
      const id = await create();
      await visitor.open(`keys/${id}/edit`);
      await test.keys.update(id, { description: 'Theirs' }, OPERATOR);
      const { status, text } = await visitor.submit('/edit', { name: 'Mine' });
      assert.deepEqual([status, text.includes('Someone else has changed the key')], [409, true]);
      assert.equal((await find(id))!.name, 'CI');
    });
  });

  describe('to its used permissions', () => {
    const use = async (secret: string) => {
      await query(test.url, secret, '{ online }');
      await test.keys.finishActivity();
    };

    it('keeps a role that it has granted, so that it can grant it again', async () => {
      const { secret, principal } = await createPrincipal(test.keys, { name: 'Maker', roles: ['ADMIN'] });
      const grant = async (name: string) =>
        query(
          test.url,
          secret,
          `mutation { createApiKey(input: { name: "${name}", roles: [GUEST] }) { apiKey { roles } } }`,
        );
      await grant('First');
      await use(secret);
      const { id } = principal.apiKey;
      assert.match(
        (await visitor.open(`keys/${id}/narrow`)).text,
        /Keeps The role GUEST API_KEY create own Removes The role ADMIN/,
      );
      assert.match(visitor.page!.text, / ONLINE create any, create own, update any, /);
      assert.match(visitor.page!.text, / API_KEY create any, read any, /);
      await visitor.submit('/narrow');
      const { roles, permissions } = (await find(id))!;
      assert.deepEqual([roles, permissions], [['GUEST'], ['API_KEY:CREATE_OWN']]);
      assert.deepEqual((await grant('Second')).body, { data: { createApiKey: { apiKey: { roles: ['GUEST'] } } } });
      assert.match((await visitor.open(`keys/${id}/narrow`)).text, /There is nothing to remove/);
    });

    it('warns of a key that was used for less than a week, and has nothing for one that never was', async () => {
      const { secret, principal } = await createPrincipal(test.keys, { name: 'New', roles: ['GUEST'] });
      await use(secret);
      const narrow = async () => (await visitor.open(`keys/${principal.apiKey.id}/narrow`)).text;
      assert.match(await narrow(), /In use for less than 7 days/);
      test.time.now += 8 * 86_400_000;
      await visitor.signIn(ada);
      assert.doesNotMatch(await narrow(), /less than 7 days/);
      const never = await create();
      assert.doesNotMatch((await visitor.open(`keys/${never}`)).text, /Remove unused permissions/);
      assert.match((await visitor.open(`keys/${never}/narrow`)).text, /has not used any of its permissions/);
    });

    it('takes nothing away that was used since it was shown', async () => {
      const { secret, principal } = await createPrincipal(test.keys, { name: 'CI', roles: ['GUEST'] });
      await use(secret);
      await visitor.open(`keys/${principal.apiKey.id}/narrow`);
      await query(test.url, secret, '{ me { name } }');
      await test.keys.finishActivity();
      const { status, text } = await visitor.submit('/narrow');
      assert.deepEqual([status, /used another permission since/.test(text)], [409, true]);
      assert.match(text, /Keeps ME read own ONLINE read any Removes/);
      assert.deepEqual((await find(principal.apiKey.id))!.roles, ['GUEST']);
    });
  });

  describe('by deleting it', () => {
    it('names what is deleted with it, and asks for its name if it may still be in use', async () => {
      const grants = { roles: ['GUEST'], permissions: ['API_KEY:CREATE_OWN'] };
      const team = await createPrincipal(test.keys, { name: 'Team', ...grants });
      const build = await createPrincipal(test.keys, { name: 'Build', ...grants }, team.principal);
      await createPrincipal(test.keys, { name: 'Nightly', roles: ['GUEST'] }, build.principal);
      await test.keys.finishActivity();
      test.time.now += 2 * MINUTE;
      const { id } = team.principal.apiKey;
      const page = await visitor.open(`keys/${id}/delete`);
      assert.match(page.text, /This deletes 3 keys, last used 2 minutes ago/);
      assert.match(page.text, /2 child keys Build active used 2 minutes ago ▸ 1 child key of Build: show/);
      const refused = await visitor.submit('/delete', { name: 'team' });
      assert.deepEqual([refused.status, /Type the exact name of the key: Team/.test(refused.text)], [422, true]);
      assert.ok(await find(id));
      const done = await visitor.submit('/delete', { name: ' Team ' });
      assert.match(done.text, /Deleted 3 keys: Team, Build, Nightly/);
      assert.equal(await find(id), undefined);
    });

    it('deletes nothing if the child keys differ from those shown', async () => {
      const { principal } = await createPrincipal(test.keys, { name: 'Parent', roles: ['ADMIN'] });
      const { id } = principal.apiKey;
      await test.keys.create({ name: 'One', roles: ['GUEST'] }, principal);
      await visitor.open(`keys/${id}/delete`);
      await test.keys.create({ name: 'Two', roles: ['GUEST'] }, principal);
      const page = await visitor.submit('/delete', { name: 'Parent' });
      assert.equal(page.status, 409);
      assert.match(page.text, /This deletes 3 keys.*Nothing was deleted: /);
      assert.notEqual(await find(id), undefined);
      assert.match((await visitor.submit('/delete', { name: 'Parent' })).text, /3 keys: Parent, /);
    });

    it('asks for nothing more if it is not in use', async () => {
      const id = await create();
      const page = await visitor.open(`keys/${id}/delete`);
      assert.match(page.text, /This deletes 1 key, never used/);
      assert.doesNotMatch(page.html, /id="name"/);
      assert.match((await visitor.submit('/delete')).text, /Deleted 1 key: CI/);
    });
  });
});
