import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { createPrincipal, openTestKeys } from '../../support/keys.ts';

describe('a store in a file', () => {
  it('tells whose a secret is without waiting, or why it is refused', async () => {
    const { keys, store } = await openTestKeys({ asServer: true });
    const { principal: creator } = await createPrincipal(keys, { name: 'Creator', roles: ['ADMIN'] });
    const created = await keys.create({ name: 'Created', roles: ['GUEST'] }, creator);
    const { secret } = await keys.rotate(created.key.id, { grace: '0s' }, OPERATOR);
    const last = await keys.rotate(created.key.id, { grace: '0s' }, OPERATOR);
    const disabled = await keys.create({ name: 'Disabled', roles: ['GUEST'] }, OPERATOR);
    await keys.setEnabled(disabled.key.id, false, OPERATOR);
    const unknown = createSecret(randomBytes);

    const answers = [last.secret, created.secret, secret, disabled.secret, unknown.text, 'x'].map((text) => {
      const answer = keys.authenticator.authenticate(text);
      assert.ok(!(answer instanceof Promise), 'it waits');
      return 'refused' in answer ? answer : answer.principal.key.name;
    });
    const publicIdOf = (text: string) => text.slice(4, 16);
    assert.deepEqual(answers, [
      'Created',
      { refused: 'rotated', publicId: publicIdOf(created.secret) },
      { refused: 'rotated', publicId: publicIdOf(secret) },
      { refused: 'disabled', publicId: publicIdOf(disabled.secret) },
      { refused: 'unknown', publicId: unknown.publicId },
      { refused: 'malformed' },
    ]);
    await store.close();
  });
});
