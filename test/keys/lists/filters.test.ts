import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type StoredKey, USE } from '../../../src/keys/key/index.ts';
import type { KeyFilters } from '../../../src/keys/lists/key-lists.ts';
import { formatCursor } from '../../../src/keys/service/management.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';
import { tempStore } from '../../support/temp.ts';

const DAY = 86_400_000;
/** More keys than an index lookup returns, and more creators than are collected before a search. */
const [KEYS, CREATORS] = [6000, 1200];
/** Uses are numbered by the first digits of ids, so few ids share them. */
const uuid = (number: number) =>
  `${String(Math.floor(number / 4)).padStart(8, '0')}-0000-4000-8000-${String(number).padStart(12, '0')}`;

describeAlwaysOnEach('keys that filters select', () => {
  let test: TestKeys;
  let now: number;
  let keys: StoredKey[];
  const lastUses = new Map<string, number>();
  before(async () => {
    test = await openTestKeys({ database: tempStore() });
    now = test.time.now;
    keys = Array.from({ length: KEYS }, (_, at) =>
      storedKey(uuid(at), {
        name: `Key ${at}`,
        createdAt: now - 400 * DAY + Math.floor(at / 3) * 1000,
        createdBy: at >= CREATORS && at % 4 === 0 ? uuid(at % CREATORS) : null,
        // One owner has more keys than are looked up, one has few, and one has a single key with children.
        owner: at % 5 < 3 ? 'Platform' : at % 700 === 3 ? 'Few' : at === 24 ? 'Boss' : null,
        tags: [...(at % 2 === 0 ? ['env=prod'] : []), ...(at % 500 === 0 ? ['rare=1'] : [])],
        expiresAt: at % 3 === 0 ? now + (at - 100) * 60_000 : null,
      }),
    );
    for (const [at, { id }] of keys.entries()) if (at % 2 === 0) lastUses.set(id, now - (at % 100) * DAY);
    await test.store.repository.write(async (writer) => {
      await writer.insert(keys);
      await writer.port(USE).add(
        [...lastUses].map(([id, lastUsedAt]) => {
          return { id, uses: 1, lastUsedAt, previousLastUsedAt: null, permissions: [], hours: [] };
        }),
      );
    });
  });
  after(() => test.store.close());

  const time = (at: number) => new Date(at).toISOString();
  const byId = () => new Map(keys.map((key) => [key.id, key]));
  const answersTo = (owner: string) => {
    const all = byId();
    return function answers({ owner: own, createdBy }: StoredKey): boolean {
      return own === owner || (createdBy !== null && answers(all.get(createdBy)!));
    };
  };
  const FILTERS: Record<string, [filters: () => KeyFilters, selects: () => (key: StoredKey) => boolean]> = {
    'an owner of many keys, in another case': [() => ({ owner: 'PLATFORM' }), () => answersTo('Platform')],
    'an owner of few keys': [() => ({ owner: 'few' }), () => answersTo('Few')],
    'the owner of a key that created others': [() => ({ owner: 'Boss' }), () => answersTo('Boss')],
    'an owner that nobody is': [() => ({ owner: 'Platfor' }), () => () => false],
    'a tag of many': [
      () => ({ tags: ['env=prod'] }),
      () =>
        ({ tags }) =>
          tags.includes('env=prod'),
    ],
    'a tag of few': [
      () => ({ tags: ['rare=1'] }),
      () =>
        ({ tags }) =>
          tags.includes('rare=1'),
    ],
    'two tags': [
      () => ({ tags: ['rare=1', 'env=prod'] }),
      () =>
        ({ tags }) =>
          tags.length === 2,
    ],
    'a tag of another case': [() => ({ tags: ['env=Prod'] }), () => () => false],
    'a creator': [
      () => ({ createdBy: uuid(24) }),
      () =>
        ({ createdBy }) =>
          createdBy === uuid(24),
    ],
    'an end': [
      () => ({ expiresBefore: time(now + 2 * 3_600_000) }),
      () =>
        ({ expiresAt: end }) =>
          end !== null && end > now && end <= now + 2 * 3_600_000,
    ],
    'no use for a while': [
      () => ({ unusedSince: time(now - 50 * DAY) }),
      () =>
        ({ id, createdAt }) =>
          createdAt < now - 50 * DAY && (lastUses.get(id) ?? 0) < now - 50 * DAY,
    ],
    'all of that': [
      () => ({ owner: 'platform', tags: ['env=prod'], unusedSince: time(now - 10 * DAY), status: 'ACTIVE' }),
      () => {
        const [answers, all] = [answersTo('Platform'), byId()];
        const isLive = ({ expiresAt: end }: StoredKey) => end === null || end > now;
        return (key) =>
          answers(key) &&
          key.tags.includes('env=prod') &&
          (lastUses.get(key.id) ?? 0) < now - 10 * DAY &&
          isLive(key) &&
          (key.createdBy === null || isLive(all.get(key.createdBy)!));
      },
    ],
  };

  for (const [what, [filters, selects]] of Object.entries(FILTERS)) {
    it(`have ${what}, page by page`, async () => {
      const expected = keys.filter(selects()).map(({ name }) => name);
      const found: string[] = [];
      for (let after: string | null = null; ;) {
        const page = await test.keys.list({ ...filters(), first: 500, after }, OPERATOR);
        found.push(...page.keys.map(({ name }) => name));
        if (!page.hasNextPage) break;
        after = formatCursor(page.keys.at(-1)!);
      }
      assert.deepEqual(found, expected);
    });

    it(`have ${what}, in another order, with how many there are`, async () => {
      const expected = keys.filter(selects()).map(({ name }) => name);
      const query = { ...filters(), first: 500, offset: 0, sort: 'CREATED', descending: true } as const;
      const page = await test.keys.lists.select(query, OPERATOR);
      assert.deepEqual(
        [page.total, page.keys.map(({ name }) => name)],
        [expected.length, expected.toReversed().slice(0, 500)],
      );
    });
  }

  it('are selected by their values after a change, and not once deleted', async () => {
    const names = async (filters: KeyFilters) => (await test.keys.list(filters, OPERATOR)).keys.map(({ name }) => name);
    const { apiKey: key } = await test.keys.create(
      { name: 'Mine', roles: ['GUEST'], owner: 'Straße', tags: ['a=1', 'b=2'] },
      OPERATOR,
    );
    assert.deepEqual(await names({ owner: 'STRASSE' }), ['Mine']);
    await test.keys.update(key.id, { owner: 'Ada', tags: ['b=3'] }, OPERATOR);
    assert.deepEqual([await names({ owner: 'strasse' }), await names({ tags: ['a=1'] })], [[], []]);
    assert.deepEqual([await names({ owner: 'ADA' }), await names({ tags: ['b=3'] })], [['Mine'], ['Mine']]);
    await test.keys.update(key.id, { description: 'Another' }, OPERATOR);
    assert.deepEqual(await names({ tags: ['b=3'] }), ['Mine']);
    const again = { name: 'Mine', roles: ['GUEST'], tags: ['c=4'], overwrite: true };
    const { apiKey: replacement } = await test.keys.create(again, OPERATOR);
    assert.deepEqual([await names({ owner: 'ada' }), await names({ tags: ['c=4'] })], [[], ['Mine']]);
    await test.keys.delete([replacement.id], OPERATOR);
    assert.deepEqual(await names({ tags: ['c=4'] }), []);
  });
});
