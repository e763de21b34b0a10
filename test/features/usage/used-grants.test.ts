import assert from 'node:assert/strict';
import { USED_GRANTS } from '../../../src/features/usage/suggest.ts';
import { OPERATOR, type Principal, requirePermission } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys } from '../../support/keys.ts';

describeOnEach('the used grants of a key', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());
  const create = (name: string, permissions = ['API_KEY:READ_ANY', 'DOCKER:READ_ANY', 'DOCKER:UPDATE_ANY']) =>
    test.keys.create({ name, permissions }, OPERATOR);
  const enter = async (secret: string): Promise<Principal> => {
    const result = await authenticate(test.keys, secret);
    assert.ok('principal' in result);
    return result.principal;
  };
  const usedBy = async (id: string) => (await test.keys.port(USED_GRANTS).of([id])).get(id)!;

  it('are those that were needed: OWN where OWN was enough', async () => {
    const { key: secret, apiKey: key } = await create('CI');
    const principal = await enter(secret);
    requirePermission(principal, 'DOCKER', 'READ_OWN');
    await test.keys.findById(key.id, principal);
    await test.keys.finishActivity();
    assert.deepEqual([...(await usedBy(key.id)).keys()], ['API_KEY:READ_OWN', 'DOCKER:READ_OWN']);
    test.time.now += 1000;
    await test.keys.list({}, await enter(secret));
    await test.keys.finishActivity();
    assert.deepEqual(
      await usedBy(key.id),
      new Map([
        ['API_KEY:READ_ANY', test.time.now],
        ['API_KEY:READ_OWN', test.time.now - 1000],
        ['DOCKER:READ_OWN', test.time.now - 1000],
      ]),
    );
  });

  it('have the latest time at which they were needed, also after the use itself was written', async () => {
    const { key: secret, apiKey: key } = await create('CI');
    const other = await openTestKeys({ database: test.database });
    const earlier = await authenticate(other.keys, secret);
    assert.ok('principal' in earlier);
    requirePermission(earlier.principal, 'DOCKER', 'READ_OWN');
    const principal = await enter(secret);
    await test.keys.finishActivity();
    test.time.now += 1000;
    requirePermission(principal, 'DOCKER', 'READ_OWN');
    await test.keys.finishActivity();
    await other.keys.finishActivity();
    await other.store.close();
    assert.deepEqual([...(await usedBy(key.id))], [['DOCKER:READ_OWN', test.time.now]]);
    assert.equal((await test.keys.useOf([key.id])).get(key.id)!.uses, 2);
  });

  it('include the permissions that a key needed for granting them', async () => {
    const { key: secret, apiKey: key } = await create('Maker', ['API_KEY:CREATE_OWN', 'DISK:READ_ANY', 'VMS:READ_ANY']);
    await test.keys.create({ name: 'Made', permissions: ['DISK:READ_ANY'] }, await enter(secret));
    await test.keys.finishActivity();
    assert.deepEqual([...(await usedBy(key.id)).keys()], ['API_KEY:CREATE_OWN', 'DISK:READ_ANY']);
  });

  it('include the roles that it granted, and none of their permissions', async () => {
    const fields = { name: 'Maker', roles: ['VIEWER'], permissions: ['API_KEY:CREATE_OWN'] };
    const { key: secret, apiKey: key } = await test.keys.create(fields, OPERATOR);
    await test.keys.create({ name: 'Made', roles: ['GUEST'] }, await enter(secret));
    await test.keys.finishActivity();
    assert.deepEqual([...(await usedBy(key.id)).keys()], ['API_KEY:CREATE_OWN', 'role:GUEST']);
  });
});
