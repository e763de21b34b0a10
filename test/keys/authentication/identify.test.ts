import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type Actor, OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';

describeOnEach('the key of a secret', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());
  /** Without the chain, which starts with the key. */
  const identify = async (secret: string, actor: Actor) => {
    const { chain, ...found } = { chain: undefined, ...(await test.keys.identify(secret, actor)) };
    assert.deepEqual(chain?.keys[0], 'apiKey' in found ? found.apiKey : undefined);
    return found;
  };

  it('is found whatever the status of the key', async () => {
    const { key: secret, apiKey: key } = await test.keys.create(
      { name: 'CI', roles: ['GUEST'], expiresIn: '1h' },
      OPERATOR,
    );
    const { publicId } = key;
    assert.deepEqual(await identify(secret, OPERATOR), { apiKey: key, status: 'ACTIVE', publicId });
    const { after } = await test.keys.setEnabled(key.id, false, OPERATOR);
    assert.deepEqual(await identify(secret, OPERATOR), { apiKey: after, status: 'DISABLED', publicId });
    test.time.now += 3_600_000;
    assert.deepEqual(await identify(secret, OPERATOR), { apiKey: after, status: 'EXPIRED', publicId });
  });

  it('is found for both secrets of a rotated key, even for the previous one after its grace', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const rotated = await test.keys.rotate(key.id, { grace: '1h' }, OPERATOR);
    const newest = { apiKey: rotated.after, status: 'ACTIVE', publicId: rotated.after.publicId };
    const before = { apiKey: rotated.after, status: 'ACTIVE', publicId: key.publicId };
    assert.notEqual(rotated.after.publicId, key.publicId);
    assert.deepEqual(await identify(secret, OPERATOR), before);
    assert.deepEqual(await identify(rotated.key, OPERATOR), newest);
    test.time.now += 3_600_000;
    assert.deepEqual(await identify(secret, OPERATOR), { ...before, status: 'ROTATED' });
    assert.deepEqual(await identify(rotated.key, OPERATOR), newest);
  });

  it('is not found for an unknown secret or for other text, which are distinguished', async () => {
    const { text, publicId } = createSecret(randomBytes);
    assert.deepEqual(await identify(text, OPERATOR), { unknown: 'unknown', publicId });
    const mistyped = text.slice(0, -1) + (text.endsWith('0') ? '1' : '0');
    for (const wrong of [mistyped, text.slice(0, -1), `${text} `, 'hello', '']) {
      assert.deepEqual(await identify(wrong, OPERATOR), { unknown: 'malformed', publicId: undefined }, wrong);
    }
  });

  it('is shown only to callers that may read the key', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const blind = await createPrincipal(test.keys, { name: 'Blind', permissions: ['API_KEY:READ_OWN'] });
    const reader = await createPrincipal(test.keys, { name: 'Reader', permissions: ['API_KEY:READ_ANY'] });
    assert.deepEqual(await identify(secret, blind.principal), { unknown: 'unknown', publicId: key.publicId });
    assert.deepEqual(await identify(secret, reader.principal), {
      apiKey: key,
      status: 'ACTIVE',
      publicId: key.publicId,
    });
    const own = await identify(blind.secret, blind.principal);
    assert.ok('apiKey' in own && own.apiKey.name === 'Blind');
  });

  it('counts as no use of the key, and as no refused request', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const entries = await test.keys.audit.read({}, OPERATOR);
    await identify(secret, OPERATOR);
    await identify('hello', OPERATOR);
    await test.keys.finishActivity();
    assert.deepEqual(await test.keys.useOf([key.id]), new Map());
    assert.deepEqual(await test.keys.audit.read({}, OPERATOR), entries);
  });
});
