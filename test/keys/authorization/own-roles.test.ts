import assert from 'node:assert/strict';
import { OPERATOR, type Principal } from '../../../src/keys/authorization/principal.ts';
import { type CatalogAdditions, createCatalog } from '../../../src/keys/permissions/catalog.ts';
import type { KeysService } from '../../../src/keys/service/service.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';

const MANAGE = ['API_KEY:CREATE_ANY', 'API_KEY:UPDATE_ANY', 'API_KEY:DELETE_ANY'];
const DECLARED: CatalogAdditions = {
  resources: ['WIKI'],
  roles: { EDITOR: ['WIKI:READ_ANY', 'WIKI:UPDATE_ANY'], READER: ['WIKI:READ_ANY'] },
};
const FORBIDDEN = { code: 'FORBIDDEN' };

describeOnEach('own roles', () => {
  let test: TestKeys;
  let keys: KeysService;
  beforeEach(async () => {
    test = await openTestKeys(DECLARED);
    keys = test.keys;
  });
  afterEach(() => test.store.close());

  /** Reopens the rules with other declarations, and authenticates the caller again. */
  const declare = (additions: CatalogAdditions) => (keys = test.keys.withCatalog(createCatalog(additions)));
  const enter = async (secret: string): Promise<Principal> => {
    const result = await authenticate(keys, secret);
    return 'principal' in result ? result.principal : assert.fail(result.refused);
  };
  const accessOf = async (secret: string) => (await enter(secret)).access.permissions();

  it('are granted by their holders, and not by holders of their permissions', async () => {
    const editor = await createPrincipal(keys, { name: 'Editor', roles: ['editor'], permissions: MANAGE });
    const child = await createPrincipal(keys, { name: 'Child', roles: ['EDITOR'] }, editor.principal);
    assert.deepEqual(child.principal.access.permissions(), [
      'WIKI:READ_ANY',
      'WIKI:READ_OWN',
      'WIKI:UPDATE_ANY',
      'WIKI:UPDATE_OWN',
    ]);
    await assert.rejects(keys.create({ name: 'Reader', roles: ['READER'] }, editor.principal), {
      ...FORBIDDEN,
      message:
        'A key cannot grant more than it holds: this key does not hold the role READER. Grant single permissions instead.',
    });
    const permissions = ['WIKI:READ_ANY', 'WIKI:UPDATE_ANY', ...MANAGE];
    const equal = await createPrincipal(keys, { name: 'Equal', permissions });
    await assert.rejects(keys.create({ name: 'Other', roles: ['EDITOR'] }, equal.principal), FORBIDDEN);
    const admin = await createPrincipal(keys, { name: 'Admin', roles: ['ADMIN'] });
    await keys.create({ name: 'By admin', roles: ['READER'] }, admin.principal);
  });

  it('narrow the child keys of one that loses them, and when they are declared narrower', async () => {
    const editor = await createPrincipal(keys, { name: 'Editor', roles: ['EDITOR'], permissions: MANAGE });
    const child = await createPrincipal(keys, { name: 'Child', roles: ['EDITOR'] }, editor.principal);
    declare({ resources: ['WIKI'], roles: { EDITOR: ['WIKI:READ_ANY'] } });
    assert.deepEqual(await accessOf(child.secret), ['WIKI:READ_ANY', 'WIKI:READ_OWN']);
    await keys.update(editor.principal.apiKey.id, { roles: [] }, OPERATOR);
    assert.deepEqual(await accessOf(child.secret), []);
  });

  it('that are declared no longer are kept, and allow nothing until they are declared again', async () => {
    const held = { roles: ['EDITOR', 'GUEST'], permissions: ['WIKI:READ_ANY', 'DOCKER:READ_OWN'] };
    const { secret, principal } = await createPrincipal(keys, { name: 'Editor', ...held });
    const { id } = principal.apiKey;
    declare({});
    const access = await accessOf(secret);
    assert.ok(access.includes('DOCKER:READ_OWN') && !access.some((permission) => permission.startsWith('WIKI')));
    const { after } = await keys.update(id, { name: 'Renamed', description: 'Once an editor' }, OPERATOR);
    assert.deepEqual([after.roles, after.permissions], [held.roles, held.permissions]);
    await assert.rejects(keys.create({ name: 'New', roles: ['EDITOR'] }, OPERATOR), { code: 'ROLE_INVALID' });
    await assert.rejects(keys.list({ roles: ['EDITOR'] }, OPERATOR), { code: 'ROLE_INVALID' });
    declare(DECLARED);
    assert.ok((await accessOf(secret)).includes('WIKI:UPDATE_ANY'));
    declare({});
    const removed = await keys.update(id, { roles: ['GUEST'], permissions: [] }, OPERATOR);
    assert.deepEqual([removed.after.roles, removed.after.permissions], [['GUEST'], []]);
  });

  it('that are no longer declared cannot be gained by keys that do not hold them', async () => {
    const dormant = await keys.create({ name: 'Dormant', roles: ['EDITOR', 'GUEST'] }, OPERATOR);
    const single = await keys.create({ name: 'Single', permissions: ['WIKI:READ_ANY', 'ME:READ_OWN'] }, OPERATOR);
    const roles = ['GUEST'];
    const manager = await createPrincipal(keys, { name: 'Manager', roles, permissions: MANAGE });
    const permissions = [...MANAGE, 'WIKI:READ_ANY'];
    const holder = await createPrincipal(keys, { name: 'Holder', roles: ['GUEST', 'EDITOR'], permissions });
    const admin = await createPrincipal(keys, { name: 'Admin', roles: ['ADMIN'] });
    declare({});
    const by = {
      manager: await enter(manager.secret),
      holder: await enter(holder.secret),
      admin: await enter(admin.secret),
    };
    await assert.rejects(keys.rotate(dormant.apiKey.id, {}, by.manager), { ...FORBIDDEN, message: /the role EDITOR/ });
    await assert.rejects(keys.rotate(single.apiKey.id, {}, by.manager), {
      ...FORBIDDEN,
      message: /lacks WIKI:READ_ANY/,
    });
    for (const { id, name } of [dormant.apiKey, single.apiKey]) {
      await keys.update(id, { description: `${name} still` }, by.manager);
      await keys.rotate(id, {}, by.holder);
      await keys.finishRotation(id, OPERATOR);
      await keys.rotate(id, {}, by.admin);
    }
    await keys.update(single.apiKey.id, { permissions: ['ME:READ_OWN'] }, by.manager);
  });

  it('of one that was verified before are looked at again, and its uses are counted once', async () => {
    const { secret, principal } = await createPrincipal(keys, { name: 'Editor', roles: ['EDITOR'] });
    const before = keys;
    declare({ resources: ['WIKI'], roles: { EDITOR: ['WIKI:READ_OWN'] } });
    assert.deepEqual(await accessOf(secret), ['WIKI:READ_OWN']);
    assert.ok((await authenticate(before, secret)) && principal.access.has('WIKI', 'UPDATE_ANY'));
    await keys.finishActivity();
    assert.equal((await keys.useOf([principal.apiKey.id])).get(principal.apiKey.id)?.uses, 3);
  });
});
