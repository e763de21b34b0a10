import assert from 'node:assert/strict';
import { type Status, STATUSES } from '../../src/keys/key/status.ts';
import { describeAlwaysOnEach } from '../support/dialects.ts';
import { idOf, openTestKeys, storedKey, type TestKeys } from '../support/keys.ts';
import { Random } from '../support/random.ts';

const NOW = 1000;

describeAlwaysOnEach('the count of keys by status', () => {
  let test: TestKeys;
  before(async () => {
    test = await openTestKeys();
  });
  after(() => test.store.close());

  it('is that of the lists by status, with ancestors counted, and has the next expiry of an active key', async () => {
    const { repository } = test.store;
    assert.deepEqual(await repository.count(NOW), { counts: { ACTIVE: 0, DISABLED: 0, EXPIRED: 0 }, nextExpiry: null });
    const random = new Random(7);
    const keys = Array.from({ length: 400 }, (_, index) =>
      storedKey(`key${index}`, {
        createdAt: index % 50,
        createdBy:
          index > 5 && random.pick([true, false]) ? idOf(`key${Math.floor(index / random.pick([2, 3, 4]))}`) : null,
        expiresAt: random.pick([null, null, null, NOW, NOW - 1, NOW + 1 + index, 100_000]),
        disabledAt: random.pick([null, null, null, null, 1]),
      }),
    );
    await repository.write((writer) => writer.insert(keys));
    const listed = async (is: Status) => repository.list({ limit: 1000, status: { is, now: NOW } });
    const { counts, nextExpiry } = await repository.count(NOW);
    for (const status of STATUSES) {
      assert.ok(counts[status] > 10, status);
      assert.equal(counts[status], (await listed(status)).length, status);
    }
    const ends = (await listed('ACTIVE')).flatMap(({ expiresAt }) => expiresAt ?? []);
    assert.equal(nextExpiry, Math.min(...ends));
  });
});
