import assert from 'node:assert/strict';
import { importKeys } from './support/import-keys.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { jsonLines, openTestKeys } from '../../support/keys.ts';

describeOnEach('imported keys, compared with the audit log', () => {
  it('are as it says, also where there are many', async () => {
    const test = await openTestKeys();
    const lines = Array.from({ length: 1100 }, (_, index) => ({
      name: `Key ${index}`,
      secret: `a-long-secret-from-elsewhere-${index}`,
      roles: ['GUEST'],
      createdAt: '2020-01-01T00:00:00Z',
    }));
    await importKeys(test.keys, jsonLines(...lines));
    const { compared, older, differences } = (await test.keys.audit.check()).comparison!;
    assert.deepEqual([compared, older, differences], [1100, 0, []]);
    await test.store.close();
  });
});
