import assert from 'node:assert/strict';
import { createCatalog, parsePermissions, PermissionSet } from '../../../src/keys/permissions/index.ts';

const catalog = createCatalog({ resources: ['WIKI'], actions: ['PUBLISH', 'APPROVE_ANY'] });
const parsed = (text: string) => parsePermissions([text], catalog);

describe('actions of an installation', () => {
  it('come after the built-in ones, and ANY brings OWN', () => {
    assert.deepEqual(catalog.actions.slice(8), ['PUBLISH', 'APPROVE_ANY', 'APPROVE_OWN']);
    assert.deepEqual(createCatalog().actions.slice(8), []);
  });

  it('are granted on each resource, in either case, and not where they are not declared', () => {
    assert.deepEqual(parsed('wiki:publish'), { values: ['WIKI:PUBLISH'], issues: [] });
    assert.deepEqual(parsed('DOCKER:approve_own').values, ['DOCKER:APPROVE_OWN']);
    assert.equal(parsePermissions(['DOCKER:PUBLISH'], createCatalog()).issues.length, 1);
    assert.match(parsed('WIKI:PUBLSH').issues[0]!.message, /PUBLISH/);
    assert.match(parsed('WIKI:*').issues[0]!.message, /WIKI:PUBLISH,WIKI:APPROVE_ANY/);
  });

  it('include OWN in ANY, and nothing else', () => {
    const set = PermissionSet.of(catalog, { roles: [], permissions: parsed('WIKI:APPROVE_ANY').values });
    assert.deepEqual(set.permissions(), ['WIKI:APPROVE_ANY', 'WIKI:APPROVE_OWN']);
    const publisher = PermissionSet.of(catalog, { roles: [], permissions: parsed('WIKI:PUBLISH').values });
    assert.deepEqual(publisher.permissions(), ['WIKI:PUBLISH']);
    assert.deepEqual(set.intersection(publisher).permissions(), []);
    assert.deepEqual(publisher.missingFrom(set), ['WIKI:PUBLISH']);
  });

  it('are part of ADMIN and of no other built-in role', () => {
    const of = (role: string) => PermissionSet.of(catalog, { roles: [role], permissions: [] }).permissions();
    assert.ok(of('ADMIN').some((permission) => permission.endsWith(':PUBLISH')));
    for (const role of ['VIEWER', 'GUEST', 'CONNECT'])
      assert.ok(of(role).every((permission) => /:(?:READ|UPDATE)_(?:ANY|OWN)$/.test(permission)));
  });

  it('allow nothing once they are no longer declared', () => {
    const granted = { roles: [], permissions: parsed('WIKI:PUBLISH').values };
    assert.deepEqual(PermissionSet.of(createCatalog({ resources: ['WIKI'] }), granted).permissions(), []);
  });

  for (const [name, words] of [
    ['READ_ANY', /built-in/],
    ['READ', /READ_ANY and READ_OWN/],
    ['publish', /capital letters/],
    ['PUB-LISH', /capital letters/],
    ['_ANY', /capital letters/],
  ] as const)
    it(`are refused by the name ${name}`, () => {
      assert.throws(() => createCatalog({ actions: [name] }), words);
    });
});
