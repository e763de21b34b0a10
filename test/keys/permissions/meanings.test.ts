import assert from 'node:assert/strict';
import { groupByAction, meaningOfPermission } from '../../../src/keys/permissions/meanings.ts';

describe('the meaning of permissions', () => {
  it('is a sentence', () => {
    assert.equal(meaningOfPermission('DOCKER:READ_ANY'), 'May read anything of docker.');
    assert.equal(
      meaningOfPermission('CONNECT__REMOTE_ACCESS:UPDATE_OWN'),
      'May update what is its own of connect remote access.',
    );
  });

  it('together is by actions, without what others include', () => {
    const permissions = [
      'VMS:DELETE_OWN',
      'ME:READ_OWN',
      'VMS:READ_ANY',
      'VMS:READ_OWN',
      'DISK:READ_ANY',
      'ME:READ_OWN',
    ];
    assert.deepEqual(groupByAction(permissions), [
      { action: 'READ_ANY', resources: ['DISK', 'VMS'] },
      { action: 'READ_OWN', resources: ['ME'] },
      { action: 'DELETE_OWN', resources: ['VMS'] },
    ]);
    assert.deepEqual(groupByAction([]), []);
  });
});
