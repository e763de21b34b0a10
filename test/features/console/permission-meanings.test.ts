import assert from 'node:assert/strict';
import {
  groupByAction,
  meaningOfPermission,
  wordsOfGrants,
  wordsOfScope,
} from '../../../src/features/console/permission-meanings.ts';

describe('the meaning of permissions', () => {
  it('is a sentence', () => {
    assert.equal(meaningOfPermission('DOCKER:READ_ANY'), 'Can read all Docker.');
    assert.equal(meaningOfPermission('CONNECT__REMOTE_ACCESS:UPDATE_OWN'), 'Can update its own remote access.');
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

  it('is a few words, with the codes that they stand for', () => {
    const permissions = ['DOCKER:UPDATE_ANY', 'VMS:READ_OWN', 'DISK:READ_ANY', 'ACTIVATION_CODE:READ_ANY'];
    assert.deepEqual(wordsOfGrants({ roles: ['VIEWER', 'DEPLOYER'], permissions }), [
      { words: 'Reads everything except credentials', codes: ['VIEWER'] },
      { words: 'Role DEPLOYER', codes: ['DEPLOYER'] },
      { words: 'Reads activation code and disk', codes: ['ACTIVATION_CODE:READ_ANY', 'DISK:READ_ANY'] },
      { words: 'Reads its own VMs', codes: ['VMS:READ_OWN'] },
      { words: 'Updates Docker', codes: ['DOCKER:UPDATE_ANY'] },
    ]);
    const many = ['ARRAY', 'DISK', 'FLASH', 'INFO', 'LOGS'].map((resource) => `${resource}:READ_ANY`);
    assert.equal(wordsOfGrants({ roles: [], permissions: many })[0]!.words, 'Reads array, disk, flash and 2 more');
    assert.deepEqual(['role:ADMIN', 'API_KEY:CREATE_OWN', 'DOCKER:DELETE_ANY'].map(wordsOfScope), [
      'Does everything',
      'Can create further keys',
      'Deletes Docker',
    ]);
  });

  it('covers actions of an installation', () => {
    assert.equal(meaningOfPermission('WIKI:PUBLISH'), 'Can publish wiki.');
    assert.equal(meaningOfPermission('WIKI:SIGN_OFF_OWN'), 'Can sign off its own wiki.');
    assert.equal(wordsOfScope('WIKI:PUBLISH'), 'Publishes wiki');
    assert.equal(wordsOfScope('WIKI:APPLY_OWN'), 'Applies its own wiki');
    assert.equal(wordsOfScope('WIKI:SIGN_OFF_ANY'), 'Signs off wiki');
    assert.deepEqual(groupByAction(['WIKI:PUBLISH', 'DISK:READ_ANY']), [
      { action: 'READ_ANY', resources: ['DISK'] },
      { action: 'PUBLISH', resources: ['WIKI'] },
    ]);
  });
});
