import assert from 'node:assert/strict';
import {
  type AccessObserver,
  OPERATOR,
  type Principal,
  principalOf,
} from '../../../src/keys/authorization/principal.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';

describeAlwaysOnEach('a key that changes keys', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  const create = async (name: string, roles: string[], permissions: string[], expiresIn?: string) =>
    (await createPrincipal(test.keys, { name, roles, permissions, ...(expiresIn && { expiresIn }) })).principal;

  it('and expires changes the texts of one that does not', async () => {
    const by = await create('By', [], ['API_KEY:UPDATE_ANY'], '1h');
    const other = await create('Other', ['ADMIN'], []);
    assert.equal((await test.keys.update(other.apiKey.id, { description: 'x' }, by)).after.description, 'x');
  });

  it('changes the texts of a disabled one that can do more', async () => {
    const by = await create('By', [], ['API_KEY:UPDATE_ANY']);
    const other = await create('Other', ['ADMIN'], []);
    await test.keys.setEnabled(other.apiKey.id, false, OPERATOR);
    assert.equal((await test.keys.update(other.apiKey.id, { description: 'x' }, by)).after.description, 'x');
  });

  it('is refused roles that it holds on paper by their permissions alone, with or without an observer', async () => {
    const { catalog } = test.keys;
    const lacked: unknown[] = [];
    const observer: AccessObserver = {
      used: () => {},
      granted: () => {},
      called: () => {},
      passed: () => {},
      lacked: (missing) => void lacked.push(missing),
    };
    const { chain } = await create('By', [], [...catalog.permissionsOf('ADMIN')]);
    const grant = (by: Principal, ...roles: string[]) => test.keys.create({ name: 'Child', roles }, by);
    const refused = (roles: string) => ({
      code: 'FORBIDDEN',
      missing: [],
      message: `A key cannot grant more than it holds: this key does not hold the ${roles}. Grant single permissions instead.`,
    });
    const by = principalOf(chain, catalog, { observer });
    await assert.rejects(grant(by, 'VIEWER'), refused('role VIEWER'));
    await assert.rejects(grant(principalOf(chain, catalog), 'VIEWER', 'GUEST'), refused('roles VIEWER and GUEST'));
    assert.deepEqual(lacked, [[]]);
  });

  it('reports each permission that it lacks to an observer', async () => {
    const told: unknown[] = [];
    const observer: AccessObserver = {
      used: (permission) => void told.push(permission),
      granted: (role) => void told.push(role),
      called: () => {},
      passed: () => {},
      lacked: (missing) => void told.push(missing),
    };
    const { chain } = await create('By', [], ['API_KEY:CREATE_OWN', 'ME:READ_OWN']);
    const by = principalOf(chain, test.keys.catalog, { observer });
    const { apiKey: key } = await test.keys.create({ name: 'Child', permissions: ['ME:READ_OWN'] }, by);
    await assert.rejects(test.keys.delete([key.id], by), { code: 'FORBIDDEN' });
    await assert.rejects(test.keys.create({ name: 'Other', permissions: ['DISK:READ_OWN'] }, by), {
      code: 'FORBIDDEN',
    });
    assert.deepEqual(told, [
      'API_KEY:CREATE_OWN',
      'ME:READ_OWN',
      ['API_KEY:DELETE_OWN'],
      'API_KEY:CREATE_OWN',
      ['DISK:READ_OWN'],
    ]);
  });
});
