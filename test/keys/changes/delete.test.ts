import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Actor, OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';

describeAlwaysOnEach('deleting keys', () => {
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
    const deleted = await test.keys.delete([a.principal.apiKey.id, c.principal.apiKey.id], OPERATOR);
    assert.deepEqual(deleted.map(({ id }) => id).toSorted(), [a.principal.apiKey.id, c.principal.apiKey.id].toSorted());
    assert.deepEqual(await names(), ['B']);
    assert.ok('refused' in (await authenticate(test.keys, a.secret)));
    assert.ok('principal' in (await authenticate(test.keys, b.secret)));
  });

  it('deletes their descendants; the named ones come first in the answer', async () => {
    const root = await create('Root');
    const child = await create('Child', root.principal);
    await create('Grandchild', child.principal);
    const other = await create('Other');
    await create('Bystander');
    const deleted = await test.keys.delete([other.principal.apiKey.id, root.principal.apiKey.id], OPERATOR);
    assert.deepEqual(
      deleted.map(({ name }) => name),
      ['Root', 'Other', 'Child', 'Grandchild'],
    );
    assert.deepEqual(await names(), ['Bystander']);
  });

  it('counts a key once that is named twice, or with its creator', async () => {
    const root = await create('Root');
    const child = await create('Child', root.principal);
    const ids = [child, root, child].map(({ principal }) => principal.apiKey.id);
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
    assert.equal((await test.keys.delete([randomUUID(), principal.apiKey.id], OPERATOR)).length, 1);
  });

  it('refuses an id that no store takes', async () => {
    await assert.rejects(test.keys.delete(['\0'], OPERATOR), { code: 'INPUT_INVALID' });
  });

  it('lets a key delete itself and its children', async () => {
    const root = await create('Root');
    await create('Child', root.principal);
    assert.equal((await test.keys.delete([root.principal.apiKey.id], root.principal)).length, 2);
    assert.deepEqual(await names(), []);
  });
});
