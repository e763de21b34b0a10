import assert from 'node:assert/strict';
import { Transfer } from '../../../src/features/transfer/transfer.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { damageKey } from '../../support/damage.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { openTestKeys } from '../../support/keys.ts';

describeOnEach('a key that a disk error has changed', () => {
  it('cannot be exported', async () => {
    const test = await openTestKeys();
    await test.keys.create({ name: 'Key', roles: ['GUEST'] }, OPERATOR);
    await damageKey(test.database, 'Key', `roles = '["ADMIN"]'`);
    const exportAll = async () => {
      for await (const page of test.keys.feature(Transfer).export({ withDigests: true })) assert.ok(page);
    };
    await assert.rejects(exportAll, {
      code: 'STORE_CORRUPT',
      message: /^The API key "Key" is damaged: .* Delete or replace it/,
    });
    await test.store.close();
  });
});
