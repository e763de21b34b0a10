import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { USE } from '../../../src/keys/key/use.ts';
import type { NewKey } from '../../../src/keys/key/key-change.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { createPrincipal, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';
import { tempStore } from '../../support/temp.ts';

const ALL = { first: 100, offset: 0, sort: 'CREATED', descending: true } as const;
const HOUR = 3_600_000;

describeAlwaysOnEach('keys as people look through them', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys({ database: tempStore() });
  });
  afterEach(() => test.store.close());

  /** Creates a key, a moment after the previous one. */
  const create = async (
    name: string,
    fields: Partial<NewKey> = {},
    by: Parameters<typeof test.keys.create>[1] = OPERATOR,
  ) => {
    test.time.now += 1000;
    return (await test.keys.create({ name, permissions: ['DOCKER:READ_ANY'], ...fields }, by)).apiKey.id;
  };
  const use = async (id: string, at: number, requests = 1) => {
    const uses = { id, uses: requests, lastUsedAt: at, previousLastUsedAt: null, permissions: [], hours: [] };
    await test.store.repository.write((writer) => writer.port(USE).add([uses]), { counts: true });
  };
  const select = async (query: object = {}, actor: Parameters<typeof test.keys.lists.select>[1] = OPERATOR) => {
    const { keys, ...page } = await test.keys.lists.select({ ...ALL, ...query }, actor);
    return { names: keys.map(({ name }) => name), ...page };
  };

  it('come with how many there are, the newest first, and page by page', async () => {
    for (let number = 1; number <= 7; number += 1) await create(`Key ${number}`);
    assert.deepEqual(await select({ first: 3, offset: 3 }), {
      names: ['Key 4', 'Key 3', 'Key 2'],
      total: 7,
      hasMore: false,
      isSorted: true,
    });
    assert.deepEqual((await select({ first: 2, descending: false })).names, ['Key 1', 'Key 2']);
    assert.deepEqual((await select({ first: 3, offset: 9 })).names, []);
  });

  it('are sorted by their ends and their use also where they are more than are sorted otherwise', async () => {
    for (let index = 0; index < 9; index += 1) {
      const expiresIn = index % 3 === 0 ? undefined : `${((index * 5) % 9) + 1}d`;
      const id = await create(`Key ${index}`, { ...(expiresIn !== undefined && { expiresIn }) });
      if (index % 4 !== 0) await use(id, test.time.now - ((index * 7) % 9) * HOUR);
    }
    await create('Other', { expiresIn: '1h' });
    for (const sort of ['EXPIRES', 'LAST_USED'])
      for (const descending of [true, false])
        for (const filter of [{}, { search: 'key' }, { search: 'key', status: 'ACTIVE' }]) {
          const all = await select({ sort, descending, ...filter });
          for (const offset of [0, 2, 4]) {
            const page = await select({ sort, descending, ...filter, first: 4, offset, countUpTo: 8 });
            assert.deepEqual(page.names, all.names.slice(offset, offset + 4), JSON.stringify({ sort, descending }));
            assert.equal(page.isSorted, true);
          }
        }
  });

  it('are sorted by names with natural numbers, by expiry and by use; keys without a value come last', async () => {
    const ids = [
      await create('key 10', { expiresIn: '2d' }),
      await create('Key 9', { expiresIn: '1d' }),
      await create('Key 100'),
    ];
    await use(ids[0]!, test.time.now);
    await use(ids[2]!, test.time.now - 5 * HOUR);
    assert.deepEqual((await select({ sort: 'NAME', descending: false })).names, ['Key 9', 'key 10', 'Key 100']);
    assert.deepEqual((await select({ sort: 'NAME' })).names, ['Key 100', 'key 10', 'Key 9']);
    assert.deepEqual((await select({ sort: 'EXPIRES', descending: false })).names, ['Key 9', 'key 10', 'Key 100']);
    assert.deepEqual((await select({ sort: 'EXPIRES' })).names, ['key 10', 'Key 9', 'Key 100']);
    assert.deepEqual((await select({ sort: 'LAST_USED' })).names, ['key 10', 'Key 100', 'Key 9']);
  });

  it('are filtered by no use, a creator, an early expiry, a role and a status, and a search', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Team', roles: ['ADMIN'] });
    const used = await create('Used', { expiresIn: '3d' });
    await use(used, test.time.now);
    await create('Of team', { expiresIn: '1d', roles: ['VIEWER'] }, principal);
    const off = await create('Off', { expiresIn: '30d' });
    await test.keys.setEnabled(off, false, OPERATOR);
    const until = (days: number) => new Date(test.time.now + days * 24 * HOUR).toISOString();
    assert.deepEqual((await select({ neverUsed: true })).names, ['Off', 'Of team', 'Team']);
    assert.deepEqual((await select({ createdBy: principal.apiKey.id })).names, ['Of team']);
    assert.deepEqual((await select({ createdBy: '' })).names, ['Off', 'Used', 'Team']);
    assert.deepEqual((await select({ owner: 'Team' })).names, ['Of team', 'Team']);
    assert.deepEqual((await select({ owner: 'Nobody' })).total, 0);
    assert.deepEqual((await select({ expiresBefore: until(7) })).names, ['Of team', 'Used']);
    assert.deepEqual((await select({ expiresBefore: until(40), status: 'active' })).names, ['Of team', 'Used']);
    assert.deepEqual((await select({ roles: ['viewer'] })).names, ['Of team']);
    assert.deepEqual((await select({ status: 'DISABLED' })).names, ['Off']);
    assert.deepEqual((await select({ search: 'TEA' })).names, ['Of team', 'Team']);
    assert.deepEqual((await select({ search: 'of', neverUsed: true, sort: 'NAME', descending: false })).names, [
      'Of team',
      'Off',
    ]);
  });

  it('are its own to a key that may read no others', async () => {
    await create('Of others');
    const may = { permissions: ['API_KEY:READ_OWN', 'API_KEY:CREATE_OWN'] };
    const { principal } = await createPrincipal(test.keys, { name: 'Bea', ...may });
    await create('Of Bea', { permissions: ['API_KEY:READ_OWN'] }, principal);
    assert.deepEqual(await select({}, principal), {
      names: ['Of Bea', 'Bea'],
      total: 2,
      hasMore: false,
      isSorted: true,
    });
    assert.deepEqual((await select({ createdBy: '' }, principal)).names, ['Bea']);
    assert.deepEqual((await select({ search: 'others' }, principal)).names, []);
  });

  it('are counted as far as is asked for, and not sorted where they are not all known', async () => {
    for (let number = 1; number <= 9; number += 1) await create(`Key ${number}`, { expiresIn: '1d' });
    const few = await select({ search: 'key', first: 2, countUpTo: 4 });
    assert.deepEqual(few, { names: ['Key 9', 'Key 8'], total: 4, hasMore: true, isSorted: true });
    const unsorted = await select({ search: 'key', first: 2, countUpTo: 4, sort: 'NAME', descending: false });
    assert.deepEqual(unsorted, { names: ['Key 9', 'Key 8'], total: 4, hasMore: true, isSorted: false });
    assert.deepEqual((await select({ search: 'key', first: 2, countUpTo: 9 })).hasMore, false);
  });

  it('refuse what cannot be asked', async () => {
    for (const query of [{ first: 501 }, { offset: -1 }, { countUpTo: 10_001 }, { expiresBefore: 'soon' }])
      await assert.rejects(select(query), { code: 'INPUT_INVALID' }, JSON.stringify(query));
  });

  it('tell all that descends from several of them, each counted once', async () => {
    const ids = new Map(['a', 'b', 'c', 'd', 'e', 'x'].map((name) => [name, crypto.randomUUID()]));
    const parents: Record<string, string | null> = { a: null, b: 'a', c: 'a', d: 'b', e: 'd', x: null };
    await test.store.repository.write((writer) =>
      writer.insert(
        Object.entries(parents).map(([name, parent], index) =>
          storedKey(ids.get(name)!, { name, createdAt: index, createdBy: parent && ids.get(parent)! }),
        ),
      ),
    );
    await use(ids.get('e')!, 7);
    const { byKey, total } = await test.keys.lists.branchesOf(['a', 'b', 'x'].map((name) => ids.get(name)!));
    assert.equal(total, 6);
    assert.deepEqual(
      ['a', 'b', 'x'].map((name) => byKey.get(ids.get(name)!)),
      [
        { count: 4, lastUsedAt: 7 },
        { count: 2, lastUsedAt: 7 },
        { count: 0, lastUsedAt: null },
      ],
    );
  });
});
