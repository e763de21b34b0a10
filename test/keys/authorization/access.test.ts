import assert from 'node:assert/strict';
import { OPERATOR, type Principal, principalOf, requirePermission } from '../../../src/keys/authorization/principal.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { countKeys, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';

describeAlwaysOnEach('what a key may do to keys', () => {
  let test: TestKeys;
  const create = async (name: string, permissions: string[], by: Principal | typeof OPERATOR = OPERATOR) => {
    test.time.now += 1;
    return (await createPrincipal(test.keys, { name, permissions }, by)).principal;
  };
  const readable = async (by: Principal) => (await test.keys.list({}, by)).keys.map(({ name }) => name);
  const forbidden = (message: string, ...missing: string[]) => ({ code: 'FORBIDDEN', message, missing });

  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  it('with READ_OWN: find and list itself and its children, nothing else', async () => {
    const own = await create('Own', ['API_KEY:CREATE_OWN', 'API_KEY:READ_OWN']);
    const child = await create('Child', ['API_KEY:CREATE_OWN', 'API_KEY:READ_OWN'], own);
    const grandchild = await create('Grandchild', ['API_KEY:READ_OWN'], child);
    const other = await create('Other', ['API_KEY:READ_OWN']);
    assert.deepEqual(await readable(own), ['Own', 'Child']);
    assert.deepEqual(await test.keys.findById(child.apiKey.id, own), child.apiKey);
    assert.deepEqual(await test.keys.findByName('Own', own), own.apiKey);
    for (const { apiKey: key } of [grandchild, other]) {
      assert.equal(await test.keys.findById(key.id, own), undefined);
      assert.equal(await test.keys.findByName(key.name, own), undefined);
    }
  });

  it('with READ_ANY: find and list all', async () => {
    const any = await create('Any', ['API_KEY:READ_ANY']);
    const other = await create('Other', ['ME:READ_OWN']);
    assert.deepEqual(await readable(any), ['Any', 'Other']);
    assert.deepEqual(await test.keys.findById(other.apiKey.id, any), other.apiKey);
  });

  it('with neither: find no keys', async () => {
    const none = await create('None', ['API_KEY:UPDATE_ANY']);
    assert.equal(await test.keys.findById(none.apiKey.id, none), undefined);
    assert.equal(await test.keys.findByName('None', none), undefined);
  });

  it('with UPDATE_OWN: update itself and its children, nothing else', async () => {
    const own = await create('Own', ['API_KEY:CREATE_OWN', 'API_KEY:UPDATE_OWN']);
    const child = await create('Child', ['API_KEY:CREATE_OWN', 'API_KEY:UPDATE_OWN'], own);
    const other = await create('Other', ['API_KEY:UPDATE_OWN']);
    await test.keys.update(own.apiKey.id, { description: 'mine' }, own);
    await test.keys.update(child.apiKey.id, { description: 'mine' }, own);
    const missing = forbidden('This key lacks API_KEY:UPDATE_ANY.', 'API_KEY:UPDATE_ANY');
    await assert.rejects(test.keys.update(other.apiKey.id, { description: 'mine' }, own), missing);
    await assert.rejects(test.keys.update(own.apiKey.id, { description: 'its' }, child), missing);
    assert.deepEqual(await test.keys.findById(other.apiKey.id, OPERATOR), other.apiKey);
  });

  it('without UPDATE: not even update itself', async () => {
    const none = await create('None', ['API_KEY:READ_ANY']);
    await assert.rejects(
      test.keys.update(none.apiKey.id, { description: 'x' }, none),
      forbidden('This key lacks API_KEY:UPDATE_OWN.', 'API_KEY:UPDATE_OWN'),
    );
  });

  it('with DELETE_OWN: delete its children, with all descendants, and nothing if one of several is not its own', async () => {
    const own = await create('Own', ['API_KEY:CREATE_OWN', 'API_KEY:DELETE_OWN']);
    const child = await create('Child', ['API_KEY:CREATE_OWN', 'API_KEY:DELETE_OWN'], own);
    await create('Grandchild', ['API_KEY:DELETE_OWN'], child);
    const other = await create('Other', ['API_KEY:DELETE_OWN']);
    await assert.rejects(
      test.keys.delete([child.apiKey.id, other.apiKey.id], own),
      forbidden('This key lacks API_KEY:DELETE_ANY.', 'API_KEY:DELETE_ANY'),
    );
    assert.equal(await countKeys(test.store.repository), 4);
    assert.equal((await test.keys.delete([child.apiKey.id], own)).length, 2);
    assert.equal(await countKeys(test.store.repository), 2);
  });

  it('grant permissions held by role, by permission, or as a part of X_ANY', async () => {
    const { principal: by } = await createPrincipal(test.keys, {
      name: 'By',
      roles: ['CONNECT'],
      permissions: ['API_KEY:CREATE_OWN', 'DOCKER:READ_ANY'],
    });
    const { apiKey: key } = await test.keys.create(
      { name: 'Child', roles: ['GUEST'], permissions: ['DOCKER:READ_OWN', 'CLOUD:UPDATE_ANY'] },
      by,
    );
    assert.equal(key.createdBy, by.apiKey.id);
  });

  it('create nothing without CREATE, and nothing more once that was removed', async () => {
    const missing = forbidden('This key lacks API_KEY:CREATE_OWN.', 'API_KEY:CREATE_OWN');
    const none = await create('None', ['ME:READ_OWN']);
    await assert.rejects(test.keys.create({ name: 'Child', permissions: ['ME:READ_OWN'] }, none), missing);
    const by = await create('By', ['API_KEY:CREATE_ANY', 'ME:READ_OWN']);
    await test.keys.update(by.apiKey.id, { permissions: ['ME:READ_OWN'] }, OPERATOR);
    await assert.rejects(test.keys.create({ name: 'Child', permissions: ['ME:READ_OWN'] }, by), missing);
  });

  it('never grant missing permissions: not by a permission, a role or an update', async () => {
    const by = await create('By', ['API_KEY:CREATE_ANY', 'API_KEY:UPDATE_ANY', 'DOCKER:READ_OWN']);
    const reason = 'A key cannot grant more than it holds: this key lacks';
    await assert.rejects(
      test.keys.create({ name: 'Child', permissions: ['DOCKER:READ_ANY', 'DOCKER:READ_OWN'] }, by),
      forbidden(`${reason} DOCKER:READ_ANY.`, 'DOCKER:READ_ANY'),
    );
    await assert.rejects(test.keys.create({ name: 'Child', roles: ['ADMIN'] }, by), {
      message: `${reason} ACTIVATION_CODE:CREATE_ANY, ACTIVATION_CODE:CREATE_OWN, ACTIVATION_CODE:READ_ANY, ACTIVATION_CODE:READ_OWN, ACTIVATION_CODE:UPDATE_ANY and 230 more.`,
    });
    await assert.rejects(
      test.keys.update(by.apiKey.id, { permissions: ['DOCKER:READ_ANY'] }, by),
      forbidden(`${reason} DOCKER:READ_ANY.`, 'DOCKER:READ_ANY'),
    );
    await assert.rejects(test.keys.update(by.apiKey.id, { roles: ['GUEST'] }, by), { code: 'FORBIDDEN' });
    assert.equal(await countKeys(test.store.repository), 1);
    assert.deepEqual(await test.keys.findById(by.apiKey.id, OPERATOR), by.apiKey);
  });

  it('names each permission that is missing, up to five', async () => {
    const by = await create('By', ['API_KEY:CREATE_OWN']);
    await assert.rejects(test.keys.create({ name: 'Child', roles: ['GUEST'] }, by), {
      message:
        'A key cannot grant more than it holds: this key lacks ME:READ_OWN, ONLINE:READ_ANY, ONLINE:READ_OWN, WELCOME:READ_ANY and WELCOME:READ_OWN.',
    });
  });

  it('is the same without an observer', async () => {
    const { chain } = await create('By', [
      'API_KEY:CREATE_OWN',
      'API_KEY:READ_OWN',
      'API_KEY:UPDATE_OWN',
      'ME:READ_OWN',
    ]);
    const by = principalOf(chain, test.keys.catalog);
    const child = await test.keys.create({ name: 'Child', permissions: ['ME:READ_OWN'] }, by);
    await test.keys.update(child.apiKey.id, { description: 'x' }, by);
    assert.equal((await test.keys.findById(child.apiKey.id, by))?.description, 'x');
    requirePermission(by, 'ME', 'READ_OWN');
    const missing = forbidden('This key lacks API_KEY:DELETE_OWN.', 'API_KEY:DELETE_OWN');
    await assert.rejects(test.keys.delete([child.apiKey.id], by), missing);
  });

  it('change the texts of a key that holds more, but not its grants', async () => {
    const by = await create('By', ['API_KEY:UPDATE_ANY']);
    const { apiKey: key } = await test.keys.create({ name: 'Boss', roles: ['ADMIN'] }, OPERATOR);
    assert.equal((await test.keys.update(key.id, { description: 'x' }, by)).after.description, 'x');
    await assert.rejects(test.keys.update(key.id, { permissions: ['API_KEY:UPDATE_ANY'] }, by), { code: 'FORBIDDEN' });
  });

  for (const [state, end] of [
    ['was disabled', (id: string) => test.keys.setEnabled(id, false, OPERATOR)],
    ['has expired', async () => void (test.time.now += 3_600_000)],
  ] as const) {
    it(`nothing that writes once it ${state}, though it was accepted before`, async () => {
      const { principal: by } = await createPrincipal(test.keys, { name: 'By', roles: ['ADMIN'], expiresIn: '1h' });
      const { apiKey: key } = await test.keys.create({ name: 'Other', permissions: ['ME:READ_OWN'] }, OPERATOR);
      await end(by.apiKey.id);
      const invalid = { code: 'FORBIDDEN', message: 'The requesting key is no longer valid.' };
      await assert.rejects(test.keys.create({ name: 'Child', permissions: ['ME:READ_OWN'] }, by), invalid);
      await assert.rejects(test.keys.update(key.id, { name: 'X' }, by), invalid);
      await assert.rejects(test.keys.setEnabled(by.apiKey.id, true, by), invalid);
      await assert.rejects(test.keys.rotate(key.id, {}, by), invalid);
      await assert.rejects(test.keys.delete([key.id], by), invalid);
      assert.deepEqual(await test.keys.findById(key.id, OPERATOR), key);
      assert.equal(await countKeys(test.store.repository), 2);
    });
  }

  it('nothing that writes once it is deleted', async () => {
    const by = (await createPrincipal(test.keys, { name: 'By', roles: ['ADMIN'] })).principal;
    const other = await create('Other', ['ME:READ_OWN']);
    await test.keys.delete([by.apiKey.id], OPERATOR);
    const gone = { code: 'FORBIDDEN', message: 'The requesting key is no longer valid.' };
    await assert.rejects(test.keys.create({ name: 'Child', roles: ['ADMIN'] }, by), gone);
    await assert.rejects(test.keys.update(other.apiKey.id, { name: 'X' }, by), gone);
    await assert.rejects(test.keys.delete([other.apiKey.id], by), gone);
    assert.deepEqual(
      (await test.keys.list({}, OPERATOR)).keys.map(({ name }) => name),
      ['Other'],
    );
  });
});
