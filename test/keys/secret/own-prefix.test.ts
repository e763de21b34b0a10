import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createCatalog } from '../../../src/keys/permissions/index.ts';
import {
  createSecret,
  hasOwnForm,
  holdsSecret,
  prefixOf,
  publicIdOfPrefix,
  readSecret,
  redactSecrets,
} from '../../../src/keys/secret/index.ts';

describe('a secret with a start of its own', () => {
  const secret = createSecret(randomBytes, 'acme');
  const shown = prefixOf(secret.publicId);

  it('has the form and the checksum of every other', () => {
    assert.match(secret.text, /^acme_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/);
    assert.deepEqual(readSecret(secret.text), { publicId: secret.publicId });
    assert.equal(readSecret(secret.text.replace('acme', 'acmf')), undefined);
    assert.equal(readSecret(secret.text.replace('acme', 'svc')), undefined);
  });

  it('is shown with its start, and its public id can be found again', () => {
    assert.match(shown, /^acme_[0-9A-Za-z]{12}_…$/);
    assert.equal(publicIdOfPrefix(shown), secret.publicId);
    assert.notEqual(secret.publicId, publicIdOfPrefix(shown.replace('acme', 'svc')));
  });

  it('is redacted whole in any process, and mistyped ones where the start is known', () => {
    assert.equal(redactSecrets(`key=${secret.text};`), `key=${shown};`);
    const other = createSecret(randomBytes, 'zeta9');
    const cut = other.text.slice(0, 25);
    assert.equal(holdsSecret(cut), false);
    assert.equal(hasOwnForm(other.text), false);
    createCatalog({ prefix: 'zeta9' });
    assert.equal(redactSecrets(cut), prefixOf(other.publicId));
    assert.equal(hasOwnForm(other.text), true);
    assert.equal(redactSecrets('svc_0123456789ab_x and no_registration_x'), 'svc_0123456789ab_… and no_registration_x');
  });

  for (const prefix of ['a', 'a'.repeat(13), 'a_b', 'ä', ''])
    it(`cannot begin with "${prefix}"`, () => {
      assert.throws(() => createCatalog({ prefix }), /not a prefix/);
    });
});
