import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { damageKey } from '../../support/damage.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { openTestKeys } from '../../support/keys.ts';
import { applyDeclared } from './declared-keys.ts';

describeOnEach('a key that a disk error has changed', () => {
  it('cannot be declared, which would make it whole', async () => {
    const test = await openTestKeys();
    await test.keys.create({ name: 'Key', roles: ['GUEST'] }, OPERATOR);
    await damageKey(test.database, 'Key', `roles = '["ADMIN"]'`);
    await assert.rejects(applyDeclared(test.keys, [{ name: 'Key', roles: ['VIEWER'] }]), {
      code: 'STORE_CORRUPT',
      message: /^The API key "Key" is damaged: .* Delete or replace it/,
    });
    await test.store.close();
  });
});
