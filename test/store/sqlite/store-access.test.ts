import assert from 'node:assert/strict';
import { placeWarnings } from '../../../src/store/sqlite/store-access.ts';
import { migratedStore } from '../../support/temp.ts';

describe('the place of a store', () => {
  for (const [type, name] of [
    [0x6969, 'NFS'],
    [0xff534d42, 'CIFS'],
    [0xfe534d42, 'SMB'],
  ] as const)
    it(`is named in a warning where it is on ${name}`, async () => {
      const [warning] = placeWarnings(await migratedStore(), () => type);
      assert.match(warning!.problem, new RegExp(`is on ${name}: the file locks that SQLite needs do not work`));
    });

  it('is on a disk without a warning', async () => {
    assert.deepEqual(
      placeWarnings(await migratedStore(), () => 0xef53),
      [],
    );
    assert.deepEqual(placeWarnings(await migratedStore()), []);
  });
});
