import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';

describeAlwaysOnEach('questions about keys', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  it('refuse an id or a name that no store takes', async () => {
    for (const text of ['\0', 'x'.repeat(1001)]) {
      await assert.rejects(test.keys.findById(text, OPERATOR), { code: 'INPUT_INVALID' });
      await assert.rejects(test.keys.findByName(text, OPERATOR), { code: 'INPUT_INVALID' });
    }
  });

  it('return the names that a new one looks like, as it would be stored', async () => {
    await test.keys.create({ name: 'Admin', roles: ['GUEST'] }, OPERATOR);
    assert.deepEqual(await test.keys.findConfusableNames(' \u0410dmin '), [{ name: '\u0410dmin', others: ['Admin'] }]);
  });

  it('are answered as long as the store is', async () => {
    await test.keys.store.check();
    const other = await openTestKeys({ database: test.database });
    await other.store.close();
    await assert.rejects(other.keys.store.check(), { code: 'STORE_FAILED' });
  });

  it('tell the rotation of a key only while both secrets work', async () => {
    const { apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const { after } = await test.keys.rotate(key.id, { grace: '1h' }, OPERATOR);
    assert.deepEqual([test.keys.rotationOf(key), test.keys.rotationOf(after)], [null, after.rotation]);
    test.time.now += 3_600_000;
    assert.equal(test.keys.rotationOf(after), null);
  });
});
