import assert from 'node:assert/strict';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { grantsBehind, readPermission } from '../../../src/keys/authorization/explain.ts';
import { PermissionSet } from '../../../src/keys/permissions/permission-set.ts';
import { suggestGrants } from '../../../src/keys/authorization/suggest.ts';

const catalog = createCatalog({ resources: ['DISK_POOL'] });

describe('what a key would need', () => {
  it('is what it has used, without what is included in it', () => {
    const key = { roles: [], permissions: ['DOCKER:READ_ANY', 'DOCKER:UPDATE_ANY', 'VMS:READ_OWN'] as const };
    const suggest = (...used: `${string}:READ_ANY`[]) => suggestGrants(PermissionSet.of(catalog, key), used);
    assert.deepEqual(suggest('DOCKER:READ_OWN' as never, 'DOCKER:READ_ANY'), {
      permissions: ['DOCKER:READ_ANY'],
      unused: ['DOCKER:UPDATE_ANY', 'DOCKER:UPDATE_OWN', 'VMS:READ_OWN'],
    });
    assert.deepEqual(suggest('DOCKER:READ_OWN' as never).permissions, ['DOCKER:READ_OWN']);
    assert.deepEqual(suggest(), {
      permissions: [],
      unused: ['DOCKER:READ_ANY', 'DOCKER:READ_OWN', 'DOCKER:UPDATE_ANY', 'DOCKER:UPDATE_OWN', 'VMS:READ_OWN'],
    });
  });

  it('is never more than it has', () => {
    const { permissions } = suggestGrants(PermissionSet.of(catalog, { roles: ['GUEST'], permissions: [] }), [
      'ME:READ_OWN',
      'DOCKER:READ_ANY',
    ]);
    assert.deepEqual(permissions, ['ME:READ_OWN']);
  });

  it('replaces a role', () => {
    const { permissions, unused } = suggestGrants(PermissionSet.of(catalog, { roles: ['ADMIN'], permissions: [] }), [
      'DISK_POOL:READ_ANY',
      'ARRAY:DELETE_OWN',
    ]);
    assert.deepEqual(permissions, ['ARRAY:DELETE_OWN', 'DISK_POOL:READ_ANY']);
    assert.equal(unused.length, 30 * 8 - 3);
  });
});

describe('why a key may do something', () => {
  const key = {
    roles: ['GUEST' as const, 'VIEWER' as const],
    permissions: ['DOCKER:UPDATE_ANY' as const, 'ME:READ_OWN' as const],
  };
  const why = (text: string) => grantsBehind(key, readPermission(text, catalog), catalog);

  it('is explained by each grant that allows it', () => {
    assert.deepEqual(why('docker:update_own'), ['DOCKER:UPDATE_ANY']);
    assert.deepEqual(why('ME:READ_OWN'), ['GUEST', 'VIEWER', 'ME:READ_OWN']);
    assert.deepEqual(why('DISK_POOL:READ_ANY'), ['VIEWER']);
    assert.deepEqual(why('DISK:UPDATE_ANY'), []);
  });

  it('cannot be explained for what is no permission', () => {
    assert.throws(() => why('DOKCER:READ_ANY'), /DOCKER/);
  });
});
