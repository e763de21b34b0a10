import assert from 'node:assert/strict';
import type { StoredKey } from '../../../src/keys/key/api-key.ts';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { broughtBackKey, restoredKey } from '../../../src/features/backup/restored-key.ts';
import { storedKey } from '../../support/keys.ts';

const NOW = 1000;
const context = { catalog: createCatalog({ roles: { EDITOR: ['DOCKER:UPDATE_ANY'] } }), now: NOW };
const BASE: Partial<StoredKey> = { roles: ['VIEWER'], permissions: [] };

/** The restored key, given its state in the backup and its current state. */
function restored(backup: Partial<StoredKey>, present: Partial<StoredKey>) {
  return restoredKey(storedKey('id', { ...BASE, ...backup }), storedKey('id', { ...BASE, ...present }), context);
}

const rotation = (previousPublicId: string, previousEndsAt: number | null) => ({
  previousPublicId,
  startedAt: 1,
  grace: 10,
  previousEndsAt,
});

describe('a key that is in a backup and in the store', () => {
  it('gets back fields without effect on access, and what was widened since', () => {
    const { key, kept } = restored(
      { name: 'Old', description: 'old', managed: true, expiresAt: 2000, limits: ['5/m'], allowFrom: ['10.0.0.0/8'] },
      { name: 'New', description: null, roles: ['ADMIN'] },
    );
    assert.deepEqual(kept, []);
    assert.deepEqual(
      [key.name, key.description, key.managed, key.roles, key.expiresAt, key.limits, key.allowFrom],
      ['Old', 'old', true, ['VIEWER'], 2000, ['5/m'], ['10.0.0.0/8']],
    );
  });

  it('is disabled again if it was when the backup was made', () => {
    const { key, kept } = restored({ disabledAt: 5 }, {});
    assert.deepEqual([key.disabledAt, kept], [5, []]);
  });

  const losses: [title: string, backup: Partial<StoredKey>, present: Partial<StoredKey>, kept: string][] = [
    ['stays disabled', {}, { disabledAt: 7 }, 'enabled'],
    ['keeps narrower roles', { roles: ['ADMIN'] }, {}, 'grants'],
    ['keeps fewer permissions', { permissions: ['DOCKER:UPDATE_ANY'] }, {}, 'grants'],
    [
      'keeps OWN in place of ANY',
      { roles: [], permissions: ['DISK:READ_ANY'] },
      { roles: [], permissions: ['DISK:READ_OWN'] },
      'grants',
    ],
    [
      'keeps permissions that a role of the backup stands for',
      {},
      { roles: [], permissions: ['DISK:READ_ANY'] },
      'grants',
    ],
    ['keeps a role that does not hold one of its own', { roles: ['EDITOR'] }, {}, 'grants'],
    ['keeps its grants without one that is not declared now', { permissions: ['WIKI:READ_ANY'] }, {}, 'grants'],
    ['keeps an earlier end', { expiresAt: 9000 }, { expiresAt: 2000 }, 'expiresAt'],
    ['keeps an end that the backup has not', {}, { expiresAt: 2000 }, 'expiresAt'],
    ['keeps closer limits', { limits: ['100/m'] }, { limits: ['5/m'] }, 'limits'],
    ['stays for its address alone', {}, { audience: 'https://mcp.example.org' }, 'audience'],
    ['keeps closer networks', { allowFrom: ['10.0.0.0/8'] }, { allowFrom: ['10.1.0.0/16'] }, 'allowFrom'],
  ];
  for (const [title, backup, present, aspect] of losses) {
    it(`${title}, where the backup has more`, () => {
      const result = restored(backup, present);
      assert.deepEqual(result.kept, [aspect]);
      assert.deepEqual(result.key, storedKey('id', { ...BASE, ...present }));
    });
  }

  it('keeps its secret and its creator', () => {
    const now = { publicId: 'new', digest: 'new', createdBy: null };
    const { key, kept } = restored({ publicId: 'old', digest: 'old', createdBy: 'creator' }, now);
    assert.deepEqual([kept, key.publicId, key.digest, key.createdBy], [['secret'], 'new', 'new', null]);
  });

  it('does not get back a previous secret that worked when the backup was made', () => {
    const old = { rotation: rotation('previous', 5000), previousDigest: 'previous' };
    const { key, kept } = restored(old, {});
    assert.deepEqual([kept, key.rotation, key.previousDigest], [['secret'], null, null]);
  });

  it('loses a previous secret that had ended when the backup of the same secret was made', () => {
    const present = { rotation: rotation('older', 9000), previousDigest: 'older' };
    const { key, kept } = restored({}, present);
    assert.deepEqual([key.rotation, key.previousDigest, kept], [null, null, []]);
    const ended = restored({ rotation: rotation('older', NOW), previousDigest: 'older' }, present);
    assert.deepEqual([ended.key.rotation, ended.key.previousDigest, ended.kept], [null, null, []]);
  });

  it('keeps a previous secret for no longer than in the backup of the same secret', () => {
    const backup = { rotation: rotation('older', 5000), previousDigest: 'older' };
    for (const end of [9000, null]) {
      const { key, kept } = restored(backup, { rotation: rotation('older', end), previousDigest: 'older' });
      assert.deepEqual([key.rotation?.previousEndsAt, key.previousDigest, kept], [5000, 'older', []]);
    }
  });

  it('is as in the backup, but disabled, where it is damaged in the store', () => {
    const { key, kept } = restored({ publicId: 'old' }, { damaged: true, publicId: 'x', roles: [] });
    assert.deepEqual([kept, key.publicId, key.roles, key.disabledAt], [['damaged'], 'old', ['VIEWER'], NOW]);
  });
});

describe('a key that is brought back', () => {
  it('is as the backup has it', () => {
    const backup = storedKey('id', { ...BASE, digest: 'old' });
    assert.deepEqual(broughtBackKey(backup, storedKey('id', { digest: 'new', disabledAt: 5 })), backup);
    assert.deepEqual(broughtBackKey(backup, undefined), backup);
  });

  it('keeps its creator where it is still there: it may have been adopted since', () => {
    const backup = storedKey('id', { createdBy: 'creator' });
    assert.equal(broughtBackKey(backup, undefined).createdBy, 'creator');
    assert.equal(broughtBackKey(backup, storedKey('id', { createdBy: null })).createdBy, null);
  });

  it('gets no longer grace than has begun since', () => {
    const backup = storedKey('id', { rotation: rotation('previous', null), previousDigest: 'previous' });
    const begun = storedKey('id', { rotation: rotation('previous', 3000), previousDigest: 'previous' });
    assert.equal(broughtBackKey(backup, begun).rotation?.previousEndsAt, 3000);
    const other = storedKey('id', { rotation: rotation('other', 3000), previousDigest: 'other' });
    assert.equal(broughtBackKey(backup, other).rotation?.previousEndsAt, null);
  });
});
