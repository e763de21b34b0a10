import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { openTestKeys } from '../../support/keys.ts';
import { applyDeclared } from './declared-keys.ts';

describeOnEach('declared keys, compared with the audit log', () => {
  it('are as it says once they were created, changed and pruned', async () => {
    const test = await openTestKeys();
    await test.keys.create({ name: 'CI', roles: ['VIEWER'], owner: 'Ada' }, OPERATOR);
    await applyDeclared(test.keys, [{ name: 'Declared', roles: ['GUEST'] }]);
    await applyDeclared(test.keys, [{ name: 'CI', roles: ['GUEST'] }], { prune: true });
    const { compared, older, differences } = (await test.keys.audit.check()).comparison!;
    assert.deepEqual([compared, older, differences], [1, 0, []]);
    await test.store.close();
  });
});
