import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { chainOf, chainStatus } from '../../src/keys/authorization/chain.ts';
import type { StoredKey } from '../../src/keys/key/api-key.ts';
import { STATUSES } from '../../src/keys/key/status.ts';
import { KEY_LISTS } from '../../src/keys/lists/key-lists.ts';
import { USE } from '../../src/keys/key/use.ts';
import type { ListQuery } from '../../src/keys/repository/repository.ts';
import { BUSY_TIMEOUT_MS } from '../../src/cli/with-keys.ts';
import { openStore } from '../../src/store/open.ts';
import { searchTextOf } from '../../src/store/rows.ts';
import { describeOnEach } from '../support/dialects.ts';
import { changeDirectly } from '../support/direct.ts';
import { storedKey } from '../support/keys.ts';
import { Random } from '../support/random.ts';
import { migratedStore } from '../support/temp.ts';

/** Few fragments, so that they often occur in one another's names, descriptions and searches. */
const WORDS = 'a|B|ab|key|KEY|k| |  |1|12|straße|STRASSE|ß|ς|Σ|é|e\u0301|\u0301|日|日本|語|😀|ﬁ|İ|\u0001'.split('|');
const SIGNS = ['%', '_', '\\', '"', '""', "'", '*', '^', '-', '(', ':', 'AND', ' OR ', 'NEAR'];
const PIECES = [...WORDS, ...SIGNS];
const NOW = Date.UTC(2030, 0, 1);
const OWNERS = ['Team', 'TEAM', 'Straße'];
const TAGS = ['a=b', 'a=c'];
const ROLES = ['ADMIN', 'GUEST', 'VIEWER'] as const;

function textOf(random: Random, most: number): string {
  return random.some(PIECES, most).join('');
}

function keysOf(random: Random, count: number): StoredKey[] {
  const ids: string[] = [];
  // The number of creators is either small, or above the limit for checking each.
  const creating = random.pick([0.02, 0.9]);
  return Array.from({ length: count }, () => {
    const id = randomUUID();
    const creator = random.chance(0.7) && ids.length > 0 ? random.pick(ids) : null;
    if (random.chance(creating)) ids.push(id);
    return storedKey(id, {
      // Many names contain a text that makes an index useless.
      name: (random.chance(0.9) ? 'common' : '') + textOf(random, 6) + id,
      owner: random.chance(0.3) ? random.pick(OWNERS) : null,
      tags: [...new Set(random.some(TAGS, 2))],
      description: random.chance(0.5) ? textOf(random, random.chance(0.3) ? 80 : 12) : null,
      createdAt: Math.floor(random.next() * 50),
      createdBy: creator,
      roles: random.some(ROLES, 2),
      expiresAt: random.chance(0.4) ? NOW + random.pick([-1, 1, 2, 1000]) : null,
      disabledAt: random.chance(0.3) ? 1 : null,
    });
  });
}

/** The expected result of a query, found by checking each key in the list's order. */
function expected(keys: readonly StoredKey[], query: ListQuery, uses: ReadonlyMap<string, number | null>): string[] {
  const byId = new Map(keys.map((key) => [key.id, key]));
  const { search = '', roles, ownedBy, owner, tags = [], createdBy, expires, status, unusedSince, neverUsed } = query;
  const { after, limit } = query;
  const text = searchTextOf({ name: search, description: null });
  const found = keys.filter(
    (key) =>
      searchTextOf(key).includes(text) &&
      (!roles || key.roles.some((role) => roles.includes(role))) &&
      (ownedBy === undefined || key.id === ownedBy || key.createdBy === ownedBy) &&
      (createdBy === undefined || key.createdBy === createdBy) &&
      tags.every((tag) => key.tags.includes(tag)) &&
      (!expires || (key.expiresAt !== null && key.expiresAt > expires.after && key.expiresAt <= expires.until)) &&
      (owner === undefined || chainOf(key, byId).keys.some(({ id }) => isOwner(byId.get(id)!, owner))) &&
      (!status || chainStatus(chainOf(key, byId), status.now) === status.is) &&
      (unusedSince === undefined || Math.max(key.createdAt, uses.get(key.id) ?? -1) < unusedSince) &&
      (!neverUsed || uses.get(key.id) == null) &&
      (!after || key.createdAt > after.createdAt || (key.createdAt === after.createdAt && key.id > after.id)),
  );
  return found.slice(0, limit).map(({ id }) => id);
}

function isOwner({ name, owner }: StoredKey, text: string): boolean {
  return name === text || (owner !== null && searchTextOf({ name: owner }) === searchTextOf({ name: text }));
}

function queryOf(random: Random, keys: readonly StoredKey[]): Omit<ListQuery, 'limit'> {
  const key = random.pick(keys);
  const name = Array.from(key.name);
  const from = Math.floor(random.next() * name.length);
  const search = random.chance(0.4)
    ? name.slice(from, from + 1 + Math.floor(random.next() * 40)).join('')
    : random.pick(['common', textOf(random, 4)]);
  return {
    ...(random.chance(0.8) && { search }),
    ...(random.chance(0.3) && { after: { createdAt: Math.floor(random.next() * 50), id: key.id } }),
    ...(random.chance(0.2) && { ownedBy: random.chance(0.5) ? key.id : (key.createdBy ?? key.id) }),
    ...(random.chance(0.1) && { createdBy: random.chance(0.5) ? key.createdBy : key.id }),
    ...(random.chance(0.2) && { owner: random.pick([...OWNERS, key.name]) }),
    ...(random.chance(0.2) && { tags: random.some(TAGS, 2) }),
    ...(random.chance(0.1) && { expires: { after: NOW, until: NOW + random.pick([1, 2, 1000]) } }),
    ...(random.chance(0.3) && { roles: random.some(ROLES, 2) }),
    ...(random.chance(0.3) && { status: { is: random.pick(STATUSES), now: NOW } }),
    ...(random.chance(0.3) && { unusedSince: Math.floor(random.next() * 70) }),
    ...(random.chance(0.2) && { neverUsed: true }),
  };
}

/** When keys were last used. For some, all requests were refused. */
function usesOf(random: Random, keys: readonly StoredKey[]): Map<string, number | null> {
  const times = random.chance(0.5) ? 60 : 5;
  return new Map(
    keys
      .filter(() => random.chance(0.9))
      .map(({ id, createdAt }) => [id, random.chance(0.1) ? null : createdAt + Math.floor(random.next() * times)]),
  );
}

describeOnEach('a search of keys', (dialect) => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32));
  it(`finds the same as a simple filter, with other filters and page by page (SEED=${seed})`, async () => {
    const random = new Random(seed);
    const keys = keysOf(random, 4500);
    const database = await migratedStore();
    const store = await openStore({ database, busyTimeoutMs: BUSY_TIMEOUT_MS });
    const uses = usesOf(random, keys);
    const gone = storedKey(randomUUID());
    const counted = Array.from(uses.set(gone.id, 1), ([id, lastUsedAt]) => {
      return { id, uses: 1, lastUsedAt, previousLastUsedAt: null, permissions: [], hours: [] };
    });
    await store.repository.write(async (writer) => {
      await writer.insert([...keys, gone]);
      await writer.port(USE).add(counted);
      await writer.delete([gone.id]);
    });
    // A gap in the row ids, so that the search by ranges has several.
    if (dialect === 'sqlite')
      await changeDirectly(
        database,
        'update api_keys set rowid = 100000 where rowid = (select max(rowid) from api_keys)',
      );
    const inOrder = keys.toSorted((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1));
    for (let times = 0; times < 60; times += 1) {
      const limit = random.chance(0.3) ? 10_000 : 1 + Math.floor(random.next() * 60);
      const query = { ...queryOf(random, keys), limit };
      const all = expected(inOrder, query, uses);
      const listed = await store.repository.list(query);
      assert.deepEqual(
        listed.map(({ id }) => id),
        all,
        JSON.stringify(query),
      );
      const { after: _, ...filter } = query;
      const whole = expected(inOrder, { ...filter, limit: Infinity }, uses).toReversed();
      const place = { offset: 2, limit: 30, most: 10_000, countsAll: true };
      const page = await store.repository
        .port(KEY_LISTS)
        .select({ ...filter, ...place, sort: 'CREATED', descending: true });
      assert.deepEqual(
        { ids: page.keys.map(({ id }) => id), total: page.total, hasMore: page.hasMore },
        { ids: whole.slice(2, 32), total: whole.length, hasMore: false },
        JSON.stringify(query),
      );
    }
    const { counts } = await store.repository.count(NOW);
    for (const is of STATUSES)
      assert.equal(counts[is], expected(inOrder, { status: { is, now: NOW }, limit: Infinity }, uses).length);
    await store.close();
  });
});
