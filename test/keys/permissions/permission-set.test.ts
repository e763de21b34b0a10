import assert from 'node:assert/strict';
import { ACTIONS, createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { groupPermissions, PermissionSet } from '../../../src/keys/permissions/permission-set.ts';

describe('a permission set', () => {
  for (const verb of ['CREATE', 'READ', 'UPDATE', 'DELETE'] as const) {
    it(`includes ${verb}_OWN in ${verb}_ANY and nothing else`, () => {
      const set = new PermissionSet([`DOCKER:${verb}_ANY`]);
      assert.deepEqual(
        ACTIONS.filter((action) => set.has('DOCKER', action)),
        [`${verb}_ANY`, `${verb}_OWN`],
      );
      assert.equal(set.has('ARRAY', `${verb}_ANY`), false);
    });

    it(`does not include ${verb}_ANY in ${verb}_OWN`, () => {
      const set = new PermissionSet([`DOCKER:${verb}_OWN`]);
      assert.deepEqual(
        ACTIONS.filter((action) => set.has('DOCKER', action)),
        [`${verb}_OWN`],
      );
    });
  }

  it('is the union of roles and permissions', () => {
    const set = PermissionSet.of(createCatalog(), {
      roles: ['GUEST'],
      permissions: ['DOCKER:READ_ANY', 'ME:UPDATE_OWN'],
    });
    assert.deepEqual(set.byResource(), [
      { resource: 'ME', actions: ['READ_OWN', 'UPDATE_OWN'] },
      { resource: 'ONLINE', actions: ['READ_ANY', 'READ_OWN'] },
      { resource: 'WELCOME', actions: ['READ_ANY', 'READ_OWN'] },
      { resource: 'DOCKER', actions: ['READ_ANY', 'READ_OWN'] },
    ]);
    assert.equal(set.permissions().length, 8);
  });

  it('has in common with another one what both allow', () => {
    const one = new PermissionSet(['DOCKER:READ_ANY', 'DOCKER:UPDATE_ANY', 'ME:READ_OWN', 'VMS:READ_ANY']);
    const other = new PermissionSet(['ME:UPDATE_OWN', 'DOCKER:UPDATE_OWN', 'DOCKER:READ_ANY', 'ARRAY:READ_ANY']);
    assert.deepEqual(one.intersection(other).byResource(), [
      { resource: 'DOCKER', actions: ['READ_ANY', 'READ_OWN', 'UPDATE_OWN'] },
    ]);
  });

  it('finds the grants that another one lacks', () => {
    const wanted = new PermissionSet(['DOCKER:READ_ANY', 'ARRAY:READ_OWN', 'ME:READ_OWN']);
    const held = new PermissionSet(['DOCKER:READ_OWN', 'ARRAY:READ_ANY', 'VMS:READ_ANY']);
    assert.deepEqual(wanted.missingFrom(held), ['DOCKER:READ_ANY', 'ME:READ_OWN']);
    assert.deepEqual(wanted.missingFrom(wanted), []);
    assert.deepEqual(new PermissionSet([]).missingFrom(new PermissionSet([])), []);
  });

  it('has no resource that was not granted, whatever its name', () => {
    for (const name of ['__proto__', 'constructor', ''])
      assert.equal(new PermissionSet([]).has(name, 'READ_ANY'), false);
  });

  it('groups grants as they were granted, adding none', () => {
    assert.deepEqual(groupPermissions(['DOCKER:READ_ANY', 'ME:READ_OWN', 'DOCKER:UPDATE_ANY']), [
      { resource: 'DOCKER', actions: ['READ_ANY', 'UPDATE_ANY'] },
      { resource: 'ME', actions: ['READ_OWN'] },
    ]);
  });
});
