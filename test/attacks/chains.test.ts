import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { CreatedKey } from '../../src/keys/service/management.ts';
import { failDelivery } from '../support/delivery.ts';
import { describeOnEach } from '../support/dialects.ts';
import { countKeys, openTestKeys, storedKey, type TestKeys } from '../support/keys.ts';

/** SQLite cascades deletions only to a depth of 1,000. */
const CHAIN = 1010;

describeOnEach('deleting keys that created one another', () => {
  let test: TestKeys;
  const names = async () => (await test.keys.list({ first: 500 }, OPERATOR)).keys.map(({ name }) => name);

  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  const picks: Record<string, [pick: (ids: string[]) => string[], left: number]> = {
    'its head': [(ids) => ids.slice(0, 1), 0],
    'all its ids': [(ids) => ids, 0],
    'all its ids but the first 100, youngest first': [(ids) => ids.slice(100).toReversed(), 100],
  };
  for (const [what, [pick, left]] of Object.entries(picks)) {
    it(`works for a chain of ${CHAIN} keys, each created by the one before, given ${what}`, async () => {
      const deleted = await test.keys.delete(pick(await createChain()), OPERATOR);
      assert.equal(deleted.length, CHAIN - left);
      assert.equal(await countKeys(test.store.repository), left);
    });
  }

  it(`deletes a chain of ${CHAIN} keys when its head is replaced, and restores it when that is reverted`, async () => {
    await createChain();
    const replacement = { name: 'Key 0', roles: ['GUEST'], overwrite: true };
    const { replaced } = await failDelivery<CreatedKey>(
      (delivery) => test.keys.create(replacement, OPERATOR, delivery),
      async () => assert.deepEqual(await names(), ['Key 0']),
    );
    assert.equal(replaced.length, CHAIN);
    assert.equal(await countKeys(test.store.repository), CHAIN);
  });

  /** Inserts the keys at once, which is faster than creating them. */
  async function createChain(): Promise<string[]> {
    const ids = Array.from({ length: CHAIN }, () => randomUUID());
    const keys = ids.map((id, index) =>
      storedKey(id, { name: `Key ${index}`, createdAt: index, createdBy: ids[index - 1] ?? null }),
    );
    await test.store.repository.write((writer) => writer.insert(keys));
    return ids;
  }
});
