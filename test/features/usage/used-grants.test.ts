import assert from 'node:assert/strict';
import { USED_GRANTS } from '../../../src/features/usage/suggest.ts';
import { Upkeep } from '../../../src/keys/authentication/upkeep.ts';
import { OPERATOR, requirePermission } from '../../../src/keys/authorization/principal.ts';
import type { Permission } from '../../../src/keys/permissions/catalog.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';

describeOnEach('the used grants of a key', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());
  const create = (permissions: readonly Permission[] = ['API_KEY:READ_ANY', 'DOCKER:READ_ANY', 'DOCKER:UPDATE_ANY']) =>
    createPrincipal(test.keys, { name: 'CI', permissions });
  const usedBy = async (id: string) => (await test.keys.port(USED_GRANTS).of([id])).get(id)!;

  it('are those that were needed: OWN where OWN was enough', async () => {
    const { principal } = await create();
    const { apiKey: key } = principal;
    requirePermission(principal, 'DOCKER', 'READ_OWN');
    await test.keys.findById(key.id, principal);
    await test.keys.finishActivity();
    assert.deepEqual([...(await usedBy(key.id)).keys()], ['API_KEY:READ_OWN', 'DOCKER:READ_OWN']);
    test.time.now += 1000;
    await test.keys.list({}, principal);
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
    const { secret, principal } = await create();
    const { id } = principal.apiKey;
    const other = await openTestKeys({ database: test.database });
    const earlier = await authenticate(other.keys, secret);
    assert.ok('principal' in earlier);
    requirePermission(earlier.principal, 'DOCKER', 'READ_OWN');
    await test.keys.finishActivity();
    test.time.now += 1000;
    requirePermission(principal, 'DOCKER', 'READ_OWN');
    await test.keys.finishActivity();
    await other.keys.finishActivity();
    await other.store.close();
    assert.deepEqual([...(await usedBy(id))], [['DOCKER:READ_OWN', test.time.now]]);
    assert.equal((await test.keys.useOf([id])).get(id)!.uses, 2);
  });

  it('include the permissions that a key needed for granting them', async () => {
    const { principal } = await create(['API_KEY:CREATE_OWN', 'DISK:READ_ANY', 'VMS:READ_ANY']);
    await test.keys.create({ name: 'Made', permissions: ['DISK:READ_ANY'] }, principal);
    await test.keys.finishActivity();
    assert.deepEqual([...(await usedBy(principal.apiKey.id)).keys()], ['API_KEY:CREATE_OWN', 'DISK:READ_ANY']);
  });

  it('include the roles that it granted, and none of their permissions', async () => {
    const fields = { name: 'Maker', roles: ['VIEWER'], permissions: ['API_KEY:CREATE_OWN'] };
    const { principal } = await createPrincipal(test.keys, fields);
    await test.keys.create({ name: 'Made', roles: ['GUEST'] }, principal);
    await test.keys.finishActivity();
    assert.deepEqual([...(await usedBy(principal.apiKey.id)).keys()], ['API_KEY:CREATE_OWN', 'role:GUEST']);
  });

  it('are removed once their key is deleted, and no others', async () => {
    const kept = (await create()).principal;
    const gone = (await createPrincipal(test.keys, { name: 'Gone', permissions: ['DOCKER:READ_ANY'] })).principal;
    for (const principal of [kept, gone]) requirePermission(principal, 'DOCKER', 'READ_OWN');
    await test.keys.finishActivity();
    await test.keys.delete([gone.apiKey.id], OPERATOR);
    await new Upkeep(test.options).run();
    assert.deepEqual(
      [(await usedBy(gone.apiKey.id)).size, [...(await usedBy(kept.apiKey.id)).keys()]],
      [0, ['DOCKER:READ_OWN']],
    );
  });
});
