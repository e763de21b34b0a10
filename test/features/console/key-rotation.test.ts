import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { startConsoleService, Visitor, visitorWith } from './support/console.ts';
import { createPrincipal } from '../../support/keys.ts';
import { query, type TestService } from '../../support/server.ts';

const MINUTE = 60_000;

describe('rotating the secret of a key in the console', () => {
  let test: TestService;
  let visitor: Visitor;
  let ada: string;
  beforeEach(async () => {
    test = await startConsoleService();
    ({ visitor, secret: ada } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] }));
  });
  afterEach(() => test.stop());

  const create = async () => (await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR)).apiKey.id;
  const secretOn = (html: string) => /<input id="secret"[^>]*value="([^"]*)"/.exec(html)?.[1] ?? '';
  const isAccepted = async (secret: string) => (await query(test.url, secret, '{ online }')).status === 200;

  it('shows the new secret once, mentions the previous one, and finishes', async () => {
    const { secret: old, principal } = await createPrincipal(test.keys, { name: 'CI', roles: ['GUEST'] });
    const { id } = principal.apiKey;
    await visitor.open(`keys/${id}/rotation`);
    const { html, text, headers } = await visitor.submit('/rotation', { grace: '2h' });
    const secret = secretOn(html);
    assert.match(text, /New secret of CI .*The grace period ends in 2 hours/);
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.deepEqual([await isAccepted(secret), await isAccepted(old)], [true, true]);
    await test.keys.finishActivity();
    test.time.now += 2 * MINUTE;
    const page = await visitor.open(`keys/${id}/rotation`);
    assert.match(
      page.text,
      /expires in 2 hours \. It is still in use: last 2 minutes ago \. Finish now .*still uses the previous one stops working/,
    );
    assert.ok(!page.html.includes(secret));
    const done = await visitor.submit('/rotation/finish');
    assert.match(done.text, /Rotation finished. Only the new secret works/);
    assert.deepEqual([await isAccepted(secret), await isAccepted(old)], [true, false]);
    assert.equal((await visitor.open(`keys/${id}`)).text.includes('Rotation in progress'), false);
  });

  it('disables the keys that it has created, after a leak', async () => {
    const team = await createPrincipal(test.keys, {
      name: 'Team',
      permissions: ['API_KEY:CREATE_OWN', 'ME:READ_OWN'],
    });
    await createPrincipal(test.keys, { name: 'Old', permissions: ['ME:READ_OWN'] }, team.principal);
    test.time.now += 10 * MINUTE;
    await createPrincipal(test.keys, { name: 'Thief', permissions: ['ME:READ_OWN'] }, team.principal);
    const address = `keys/${team.principal.apiKey.id}/rotation`;
    await visitor.open(address);
    assert.match(
      visitor.page!.text,
      /Also disable the keys that it created: an attacker may have made them\. Thief, Old/,
    );
    const wrong = await visitor.submit('/rotation', { disableCreated: 'on', createdSince: 'soon', grace: '0s' });
    assert.deepEqual([wrong.status, /This is not a time/.test(wrong.text)], [422, true]);
    const done = await visitor.submit('/rotation', { createdSince: '5m', yourKey: ada });
    assert.match(done.text, /Disabled, because this key created them: Thief Next steps/);
  });

  it('reports errors at its field, and a rotation in progress', async () => {
    const id = await create();
    await visitor.open(`keys/${id}/rotation`);
    const { status, html } = await visitor.submit('/rotation', { grace: '91d' });
    assert.equal(status, 400);
    assert.match(html, /<p id="grace-problem" class="wrong">[^<]*longer than 90 days/);
    await test.keys.rotate(id, {}, OPERATOR);
    assert.match((await visitor.submit('/rotation', { grace: '1h' })).text, /already being rotated.*Finish now/);
  });

  it('is not offered, nor is enabling, where the key lasts longer than that of the person, or has a role beyond', async () => {
    const permissions = ['API_KEY:UPDATE_ANY', 'API_KEY:READ_ANY', 'DOCKER:READ_ANY', 'ME:READ_OWN'] as const;
    const { visitor: bea } = await visitorWith(test, { name: 'Bea', permissions, expiresIn: '2d' });
    const fields = { permissions: ['DOCKER:READ_ANY'], expiresIn: '1d' } as const;
    const isOffered = async (name: string, given: object) => {
      const { apiKey: key } = await test.keys.create({ ...fields, ...given, name }, OPERATOR);
      await test.keys.setEnabled(key.id, false, OPERATOR);
      const { html } = await bea.open(`keys/${key.id}`);
      return ['/rotation"', '/enable"'].map((address) => html.includes(address));
    };
    assert.deepEqual(await isOffered('Within', {}), [true, true]);
    assert.deepEqual(await isOffered('Longer', { expiresIn: '3d' }), [false, false]);
    assert.deepEqual(await isOffered('Roles', { permissions: [], roles: ['GUEST'] }), [false, false]);
  });
});
