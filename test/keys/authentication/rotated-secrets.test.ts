import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys } from '../../support/keys.ts';
import { migratedStore } from '../../support/temp.ts';

describeOnEach('a secret that a key had once', () => {
  let test: TestKeys;
  let database: string;
  let first: string;
  let id: string;
  beforeEach(async () => {
    database = await migratedStore();
    test = await openTestKeys({ database });
    const created = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    first = created.key;
    id = created.apiKey.id;
  });
  afterEach(() => test.store.close());
  const statusOf = async (secret: string, { keys } = test) => {
    const found = await keys.identify(secret, OPERATOR);
    return 'unknown' in found ? found.unknown : `${found.status} ${found.apiKey.name} ${found.publicId}`;
  };
  const rotated = (secret: string) => `ROTATED CI ${secret.slice(4, 16)}`;

  it('is known after its rotation was finished, and after the next ones', async () => {
    const second = await test.keys.rotate(id, {}, OPERATOR);
    await test.keys.finishRotation(id, OPERATOR);
    assert.equal(await statusOf(first), rotated(first));
    const third = await test.keys.rotate(id, { grace: '0s' }, OPERATOR);
    const fourth = await test.keys.rotate(id, { grace: '1h' }, OPERATOR);
    for (const secret of [first, second.key]) assert.equal(await statusOf(secret), rotated(secret));
    for (const { key: secret } of [third, fourth])
      assert.equal(await statusOf(secret), `ACTIVE CI ${secret.slice(4, 16)}`);
    for (const secret of [first, second.key])
      assert.deepEqual(await authenticate(test.keys, secret), { refused: 'rotated', publicId: secret.slice(4, 16) });
  });

  it('is known after its rotation was rolled back', async () => {
    const { key: secret } = await test.keys.rotate(id, {}, OPERATOR);
    await test.keys.rollBackRotation(id, OPERATOR);
    assert.deepEqual(
      [await statusOf(secret), await statusOf(first)],
      [rotated(secret), `ACTIVE CI ${first.slice(4, 16)}`],
    );
  });

  it('is rotated, not disabled, where its key is disabled as well', async () => {
    await test.keys.rotate(id, { grace: '0s' }, OPERATOR);
    await test.keys.rotate(id, { grace: '0s' }, OPERATOR);
    await test.keys.setEnabled(id, false, OPERATOR);
    assert.equal(await statusOf(first), rotated(first));
  });

  it('is in the audit log, with its key, when it is used', async () => {
    await test.keys.rotate(id, {}, OPERATOR);
    await test.keys.finishRotation(id, OPERATOR);
    await authenticate(test.keys, first);
    await test.keys.finishActivity();
    const [entry] = await test.keys.audit.read({ action: 'refuse' }, OPERATOR);
    assert.deepEqual(
      [entry?.actor.name, entry?.apiKey, entry?.after],
      [`svc_${first.slice(4, 16)}_…`, { id, name: 'CI' }, { reason: 'rotated', count: 1 }],
    );
  });

  it('is forgotten with the key, and with the audit entries of that time', async () => {
    const second = await test.keys.rotate(id, {}, OPERATOR);
    await test.keys.finishRotation(id, OPERATOR);
    test.time.now += 3_600_000;
    await test.keys.rotate(id, {}, OPERATOR);
    await test.keys.finishRotation(id, OPERATOR);
    await test.keys.audit.prune('30m');
    assert.deepEqual([await statusOf(first), await statusOf(second.key)], ['unknown', rotated(second.key)]);
    await test.keys.delete([id], OPERATOR);
    assert.equal(await statusOf(second.key), 'unknown');
  });
});
