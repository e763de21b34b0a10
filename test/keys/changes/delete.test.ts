import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Actor, OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { countKeys, createPrincipal, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';
import { failDelivery } from '../../support/delivery.ts';
import type { CreatedKey } from '../../../src/keys/management.ts';

/** One deletion takes others with it in SQLite up to a depth of 1,000. */
const CHAIN = 1010;

describeOnEach('deleting keys', () => {
  let test: TestKeys;
  const create = async (name: string, by: Actor = OPERATOR) => {
    test.time.now += 1;
    return createPrincipal(test.keys, { name, roles: ['ADMIN'] }, by);
  };
  const names = async () => (await test.keys.list({ first: 500 }, OPERATOR)).keys.map(({ name }) => name);

  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  it('revokes their secrets and leaves the others', async () => {
    const [a, b, c] = [await create('A'), await create('B'), await create('C')];
    const deleted = await test.keys.delete([a.principal.key.id, c.principal.key.id], OPERATOR);
    assert.deepEqual(deleted.map(({ id }) => id).toSorted(), [a.principal.key.id, c.principal.key.id].toSorted());
    assert.deepEqual(await names(), ['B']);
    assert.ok('refused' in (await test.keys.authenticate(a.secret)));
    assert.ok('principal' in (await test.keys.authenticate(b.secret)));
  });

  it('deletes those that they created, and theirs; the named ones come first in the answer', async () => {
    const root = await create('Root');
    const child = await create('Child', root.principal);
    await create('Grandchild', child.principal);
    const other = await create('Other');
    await create('Bystander');
    const deleted = await test.keys.delete([other.principal.key.id, root.principal.key.id], OPERATOR);
    assert.deepEqual(
      deleted.map(({ name }) => name),
      ['Root', 'Other', 'Child', 'Grandchild'],
    );
    assert.deepEqual(await names(), ['Bystander']);
  });

  it('counts a key once that is named twice, or with its creator', async () => {
    const root = await create('Root');
    const child = await create('Child', root.principal);
    const ids = [child, root, child].map(({ principal }) => principal.key.id);
    const deleted = await test.keys.delete(ids, OPERATOR);
    assert.deepEqual(
      deleted.map(({ name }) => name),
      ['Root', 'Child'],
    );
  });

  it('ignores ids that no key has', async () => {
    const { principal } = await create('A');
    assert.deepEqual(await test.keys.delete([], OPERATOR), []);
    assert.deepEqual(await test.keys.delete([randomUUID(), '', "' or 1=1"], OPERATOR), []);
    assert.equal((await test.keys.delete([randomUUID(), principal.key.id], OPERATOR)).length, 1);
  });

  it('refuses an id that no store takes', async () => {
    await assert.rejects(test.keys.delete(['\0'], OPERATOR), { code: 'INPUT_INVALID' });
  });

  it('lets a key delete itself, and what it created', async () => {
    const root = await create('Root');
    await create('Child', root.principal);
    assert.equal((await test.keys.delete([root.principal.key.id], root.principal)).length, 2);
    assert.deepEqual(await names(), []);
  });

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

  /** Stores the keys at once, which is faster than creating them one by one. */
  async function createChain(): Promise<string[]> {
    const ids = Array.from({ length: CHAIN }, () => randomUUID());
    const keys = ids.map((id, index) =>
      storedKey(id, { name: `Key ${index}`, createdAt: index, createdBy: ids[index - 1] ?? null }),
    );
    await test.store.repository.write((writer) => writer.insert(keys));
    return ids;
  }
});
