import assert from 'node:assert/strict';
import { importKeys } from './support/import-keys.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, jsonLines, openTestKeys } from '../../support/keys.ts';

describeOnEach('a secret that a key had once', () => {
  it('can be imported for another key, and is that one’s then', async () => {
    const test = await openTestKeys();
    const { secret, principal } = await createPrincipal(test.keys, { name: 'CI', roles: ['GUEST'] });
    const { id } = principal.apiKey;
    await test.keys.rotate(id, {}, OPERATOR);
    await test.keys.finishRotation(id, OPERATOR);
    const line = { name: 'Other', secret, roles: ['GUEST'] };
    const { imported } = await importKeys(test.keys, jsonLines(line));
    const found = await authenticate(test.keys, secret);
    assert.deepEqual([imported, 'principal' in found && found.principal.apiKey.name], [1, 'Other']);
    await test.store.close();
  });
});
