import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { STATUSES, type StoredKey } from '../../src/keys/key/api-key.ts';
import type { ListQuery } from '../../src/keys/repository/repository.ts';
import { BUSY_TIMEOUT_MS } from '../../src/cli/with-keys.ts';
import { openStore } from '../../src/store/open.ts';
import { searchTextOf } from '../../src/store/rows.ts';
import { describeOnEach } from '../support/dialects.ts';
import { storedKey } from '../support/keys.ts';
import { Random } from '../support/random.ts';
import { foundInEveryWay } from '../support/searches.ts';
import { migratedStore } from '../support/temp.ts';

/** Pieces of names, descriptions and searches: few, so that they often occur in one another. */
const WORDS = 'a|B|ab|key|KEY|k| |  |1|12|straße|STRASSE|ß|ς|Σ|é|e\u0301|\u0301|日|日本|語|😀|ﬁ|İ|\u0001'.split('|');
const SIGNS = ['%', '_', '\\', '"', '""', "'", '*', '^', '-', '(', ':', 'AND', ' OR ', 'NEAR'];
const PIECES = [...WORDS, ...SIGNS];
const NOW = Date.UTC(2030, 0, 1);
const ROLES = ['ADMIN', 'GUEST', 'VIEWER'] as const;

function textOf(random: Random, most: number): string {
  return random.some(PIECES, most).join('');
}

function keysOf(random: Random, count: number): StoredKey[] {
  const ids: string[] = [];
  return Array.from({ length: count }, () => {
    const id = randomUUID();
    const creator = random.chance(0.3) && ids.length > 0 ? random.pick(ids) : null;
    if (creator === null) ids.push(id);
    return storedKey(id, {
      name: textOf(random, 6) + id,
      description: random.chance(0.5) ? textOf(random, 12) : null,
      createdAt: Math.floor(random.next() * 50),
      createdBy: creator,
      roles: random.some(ROLES, 2),
      expiresAt: random.chance(0.3) ? NOW - 1 : null,
      disabledAt: random.chance(0.3) ? 1 : null,
    });
  });
}

/** What a query is to find, by a plain filter over the same list without the search. */
function expected(keys: readonly { id: string; name: string; description: string | null }[], search: string): string[] {
  const text = searchTextOf({ name: search, description: null });
  return keys.filter((key) => searchTextOf(key).includes(text)).map(({ id }) => id);
}

function queryOf(random: Random, keys: readonly StoredKey[]): Omit<ListQuery, 'limit'> {
  const key = random.pick(keys);
  const name = Array.from(key.name);
  const from = Math.floor(random.next() * name.length);
  return {
    search: random.chance(0.4)
      ? name.slice(from, from + 1 + Math.floor(random.next() * 40)).join('')
      : textOf(random, 4),
    ...(random.chance(0.3) && { after: { createdAt: Math.floor(random.next() * 50), id: key.id } }),
    ...(random.chance(0.2) && { ownedBy: key.id }),
    ...(random.chance(0.3) && { roles: random.some(ROLES, 2) }),
    ...(random.chance(0.3) && { status: { is: random.pick(STATUSES), now: NOW } }),
  };
}

describeOnEach('a search of keys', () => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32));
  it(`finds what a plain filter finds, in every way, with other filters and page by page (SEED=${seed})`, async () => {
    const random = new Random(seed);
    const keys = keysOf(random, 2500);
    const database = await migratedStore();
    const store = await openStore({ database, busyTimeoutMs: BUSY_TIMEOUT_MS });
    await store.repository.write((writer) => writer.insert(keys), { now: 0 });
    const found = async (query: ListQuery) => (await store.repository.list(query)).map(({ id }) => id);
    for (let times = 0; times < 120; times += 1) {
      const { search, ...filters } = queryOf(random, keys);
      const limit = random.chance(0.5) ? 10_000 : 1 + Math.floor(random.next() * 60);
      const all = expected(await store.repository.list({ ...filters, limit: 10_000 }), search!).slice(0, limit);
      const query = { ...filters, search, limit };
      assert.deepEqual(await found(query), all, JSON.stringify(query));
      for (const ids of await foundInEveryWay(database, query)) assert.deepEqual(ids, all, JSON.stringify(query));
    }
    await store.close();
  });
});
