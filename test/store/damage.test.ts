import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { ApiKey } from '../../src/keys/key/api-key.ts';
import { damageKey } from '../support/damage.ts';
import { describeAlwaysOnEach } from '../support/dialects.ts';
import { changeDirectly, readDirectly } from '../support/direct.ts';
import { authenticate, openTestKeys, type TestKeys } from '../support/keys.ts';
import { until } from '../support/until.ts';

const DAMAGED = { code: 'STORE_CORRUPT', message: /^The API key "Key" is damaged: .* Delete or replace it/ };

describeAlwaysOnEach('a key that a disk error has changed', () => {
  let test: TestKeys;
  let secret: string;
  let key: ApiKey;
  beforeEach(async () => {
    test = await openTestKeys({ asServer: true });
    ({ key: secret, apiKey: key } = await test.keys.create(
      { name: 'Key', roles: ['GUEST'], expiresIn: '1h' },
      OPERATOR,
    ));
  });
  afterEach(() => test.store.close());

  const reasonOf = async (presented: string) => {
    const result = await authenticate(test.keys, presented);
    return 'principal' in result ? 'accepted' : result.refused;
  };

  for (const change of [
    `roles = '["ADMIN"]'`,
    `roles = '["GUEST'`,
    `permissions = '{}'`,
    'expires_at = null',
    'expires_at = expires_at + 1048576',
    'created_at = created_at + 1',
    "name_skeleton = 'x', public_id = 'another'",
    "previous_digest = 'x', previous_public_id = 'y', rotated_at = 1, rotation_grace = 1",
  ]) {
    it(`is refused where ${change}`, async () => {
      await damageKey(test.database, 'Key', change);
      assert.equal(await reasonOf(secret), 'damaged');
      assert.deepEqual((await test.keys.findById(key.id, OPERATOR))?.damaged, true);
    });
  }

  it('takes its child keys along', async () => {
    const parent = await test.keys.create({ name: 'Parent', roles: ['ADMIN'] }, OPERATOR);
    const found = await authenticate(test.keys, parent.key);
    assert.ok('principal' in found);
    const child = await test.keys.create({ name: 'Child', roles: ['GUEST'] }, found.principal);
    assert.equal(await reasonOf(child.key), 'accepted');
    await damageKey(test.database, 'Parent', 'disabled_at = null, expires_at = 1');
    // PostgreSQL notifies of the change a moment later.
    await until(async () => (await reasonOf(child.key)) === 'damaged');
  });

  it('cannot be changed, which would make it whole', async () => {
    await test.keys.rotate(key.id, {}, OPERATOR);
    await damageKey(test.database, 'Key', `roles = '["ADMIN"]'`);
    for (const attempt of [
      () => test.keys.update(key.id, { description: 'x' }, OPERATOR),
      () => test.keys.setEnabled(key.id, false, OPERATOR),
      () => test.keys.rotate(key.id, { grace: '0s' }, OPERATOR),
      () => test.keys.finishRotation(key.id, OPERATOR),
      () => test.keys.rollBackRotation(key.id, OPERATOR),
    ])
      await assert.rejects(attempt, (error: Error & { code: string }) =>
        error.code === 'STORE_CORRUPT' ? DAMAGED.message.test(error.message) : error.code === 'ROTATION_IN_PROGRESS',
      );
    assert.equal(await reasonOf(secret), 'damaged');
  });

  it('can be replaced, and deleted', async () => {
    await damageKey(test.database, 'Key', `roles = '["ADMIN"]'`);
    const made = await test.keys.create({ name: 'Key', roles: ['GUEST'], overwrite: true }, OPERATOR);
    assert.equal(await reasonOf(made.key), 'accepted');
    await damageKey(test.database, 'Key', 'expires_at = 9');
    await test.keys.delete([made.apiKey.id], OPERATOR);
    assert.equal(await test.keys.findByName('Key', OPERATOR), undefined);
  });

  it('stays damaged when its replacement is reverted', async () => {
    await damageKey(test.database, 'Key', `roles = '["ADMIN"]'`);
    const failing = {
      deliver: () => {
        throw new Error('no room');
      },
    };
    await assert.rejects(test.keys.create({ name: 'Key', roles: ['GUEST'], overwrite: true }, OPERATOR, failing));
    assert.equal(await reasonOf(secret), 'damaged');
  });

  it('is named by the comparison with the audit log', async () => {
    assert.deepEqual((await test.keys.audit.check()).comparison!.differences, []);
    await damageKey(test.database, 'Key', "digest = 'x'");
    assert.deepEqual((await test.keys.audit.check()).comparison!.differences, [
      { id: key.id, name: 'Key', reason: 'is damaged: its row does not match its checksum' },
    ]);
  });

  it('is not one that another program has written in another form, once it is changed by the rules', async () => {
    await changeDirectly(test.database, `update api_keys set roles = '[ "GUEST" ]' where name = 'Key'`);
    await test.keys.update(key.id, { description: 'By the rules' }, OPERATOR);
    assert.equal(await reasonOf(secret), 'accepted');
    await damageKey(test.database, 'Key', `roles = '["ADMIN"]'`);
    assert.equal(await reasonOf(secret), 'damaged');
  });

  it('is not one that another program has changed through the database, which removes the checksum', async () => {
    await changeDirectly(test.database, `update api_keys set fields = '{"1":"By hand"}' where name = 'Key'`);
    assert.equal(await reasonOf(secret), 'accepted');
    assert.deepEqual(await readDirectly(test.database, 'select checksum from api_keys'), [{ checksum: null }]);
    await test.keys.update(key.id, { description: 'By the rules' }, OPERATOR);
    await damageKey(test.database, 'Key', 'expires_at = null');
    assert.equal(await reasonOf(secret), 'damaged', 'it has a checksum again');
  });
});
