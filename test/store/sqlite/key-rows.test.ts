import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { createPrincipal, openTestKeys } from '../../support/keys.ts';

describe('a store in a file', () => {
  it('finds the key of a secret without waiting, or the reason of a refusal', async () => {
    const { keys, store } = await openTestKeys({ asServer: true });
    const { principal: creator } = await createPrincipal(keys, { name: 'Creator', roles: ['ADMIN'] });
    const created = await keys.create({ name: 'Created', roles: ['GUEST'] }, creator);
    const { key: secret } = await keys.rotate(created.apiKey.id, { grace: '0s' }, OPERATOR);
    const last = await keys.rotate(created.apiKey.id, { grace: '0s' }, OPERATOR);
    const disabled = await keys.create({ name: 'Disabled', roles: ['GUEST'] }, OPERATOR);
    await keys.setEnabled(disabled.apiKey.id, false, OPERATOR);
    const unknown = createSecret(randomBytes);

    const answers = [last.key, created.key, secret, disabled.key, unknown.text, 'x'].map((text) => {
      const answer = keys.authenticator.confirm(text);
      assert.ok(!(answer instanceof Promise), 'it waits');
      return 'refused' in answer ? answer : answer.principal.apiKey.name;
    });
    const publicIdOf = (text: string) => text.slice(4, 16);
    assert.deepEqual(answers, [
      'Created',
      { refused: 'rotated', publicId: publicIdOf(created.key) },
      { refused: 'rotated', publicId: publicIdOf(secret) },
      { refused: 'disabled', publicId: publicIdOf(disabled.key) },
      { refused: 'unknown', publicId: unknown.publicId },
      { refused: 'malformed' },
    ]);
    await store.close();
  });
});
