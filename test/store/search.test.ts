import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import type { StoredKey } from '../../src/keys/key/api-key.ts';
import { STATUSES } from '../../src/keys/key/status.ts';
import type { ListQuery } from '../../src/keys/repository.ts';
import { searchesFor } from '../../src/store/list-keys.ts';
import { searchTextOf } from '../../src/store/rows.ts';
import { openConnection, type Store, openStore } from '../../src/store/open.ts';
import type { Search } from '../../src/store/searches.ts';
import type { ApiKeyTable } from '../../src/store/tables.ts';
import { describeOn, describeOnEach } from '../support/dialects.ts';
import { changeDirectly, readDirectly } from '../support/direct.ts';
import { storedKey } from '../support/keys.ts';
import { Random } from '../support/random.ts';
import { tempStore } from '../support/temp.ts';

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

/** What one way of searching finds by itself. */
async function foundBy(search: Search<ApiKeyTable[]>): Promise<string[]> {
  for (;;) {
    const step = await search.next();
    if (step.done) return step.value.map(({ id }) => id);
  }
}

/** What each way of searching for a text finds by itself. */
async function foundInEveryWay(database: string, search: string): Promise<string[][]> {
  const connection = await openConnection({ database });
  const ways = await searchesFor(connection, { search, limit: 10_000 });
  const found = [];
  for (const way of ways) found.push(await foundBy(way));
  await connection.close();
  return found;
}

describeOnEach('a search of keys', (dialect) => {
  let database: string;
  let store: Store;
  beforeEach(async () => {
    database = tempStore();
    store = await openStore({ database });
  });
  afterEach(() => store.close());

  const insert = (keys: readonly StoredKey[]) => store.repository.write((writer) => writer.insert(keys));
  const found = async (query: Partial<ListQuery>) =>
    (await store.repository.list({ limit: 10_000, ...query })).map(({ id }) => id);

  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32));
  it(`finds what a plain filter finds, in every way, with other filters and page by page (SEED=${seed})`, async () => {
    const random = new Random(seed);
    const keys = keysOf(random, 2500);
    await insert(keys);
    const connection = await openConnection({ database });
    for (let times = 0; times < 120; times += 1) {
      const { search, ...filters } = queryOf(random, keys);
      const limit = random.chance(0.5) ? 10_000 : 1 + Math.floor(random.next() * 60);
      const all = expected(await store.repository.list({ ...filters, limit: 10_000 }), search!).slice(0, limit);
      const query = { ...filters, search, limit };
      assert.deepEqual(await found(query), all, JSON.stringify(query));
      for (const way of await searchesFor(connection, query))
        assert.deepEqual(await foundBy(way), all, JSON.stringify(query));
    }
    await connection.close();
  });

  it('finds what was changed or deleted by SQL', async () => {
    await insert([storedKey('one'), storedKey('two'), storedKey('three')]);
    await changeDirectly(
      database,
      "update api_keys set search_text = 'MEANWHILE' where id = 'one'",
      "delete from api_keys where id = 'two'",
      `insert into api_keys (id, name, roles, permissions, public_id, digest, created_at, managed, search_text)
        values ('four', 'four', '[]', '[]', 'four', 'four', 1, 0, 'BY HAND')`,
    );
    for (const [search, ids] of [
      ['meanwhile', ['one']],
      ['one', []],
      ['two', []],
      ['y han', ['four']],
    ] as const) {
      for (const found of await foundInEveryWay(database, search)) assert.deepEqual(found, ids);
    }
  });

  it('has an index that belongs to the rows', async () => {
    await insert(keysOf(new Random(1), 50));
    if (dialect === 'sqlite') {
      await changeDirectly(database, 'delete from api_keys where rowid % 3 = 0', 'vacuum');
      const [rows] = await readDirectly(
        database,
        'select (select group_concat(rowid order by rowid) from api_keys) as keys, (select group_concat(id order by id) from api_keys_search_docsize) as found',
      );
      assert.equal(rows!['found'], rows!['keys']);
    } else {
      const plan = await readDirectly(
        database,
        "select indexdef as index from pg_indexes where schemaname = current_schema() and indexname = 'api_keys_by_search_text'",
      );
      assert.match(String(plan[0]!['index']), /gin \(search_text public\.gin_trgm_ops\)/);
    }
  });
});

describe('a store in a PostgreSQL database', () => {
  it('whose user may not create pg_trgm is searched without an index', async () => {
    const name = `plain_${randomBytes(8).toString('hex')}`;
    const server = new URL(process.env['TEST_DATABASE_URL']!);
    const admin = new Pool({ connectionString: server.href, max: 1 });
    await admin.query(`create role ${name} login password 'a password'`);
    await admin.query(`create database ${name}`);
    const url = new URL(`postgres://${name}:a%20password@${server.host}/${name}?schema=own`);
    const owner = new Pool({ connectionString: Object.assign(new URL(server), { pathname: name }).href, max: 1 });
    await owner.query(`create schema own authorization ${name}`);
    await owner.end();
    const store = await openStore({ database: url.href });
    await store.repository.write((writer) => writer.insert([storedKey('one'), storedKey('two')]));
    assert.deepEqual(
      (await store.repository.list({ search: 'two', limit: 9 })).map(({ id }) => id),
      ['two'],
    );
    await store.close();
    const reader = new Pool({ connectionString: url.href, max: 1 });
    const { rows } = await reader.query("select 1 from pg_indexes where indexname = 'api_keys_by_search_text'");
    assert.deepEqual(rows, []);
    await reader.end();
    await admin.query(`drop database ${name}`);
    await admin.query(`drop role ${name}`);
    await admin.end();
  });
});

describeOn('sqlite', 'a search of keys', () => {
  it('finds a text behind a NUL, which SQL can write', async () => {
    const database = tempStore();
    const store = await openStore({ database });
    await store.repository.write((writer) => writer.insert([storedKey('one'), storedKey('two')]));
    await changeDirectly(database, "update api_keys set search_text = 'FIRST' || char(0) || 'SECOND' where id = 'two'");
    for (const search of ['first', 'second'])
      assert.deepEqual(await foundInEveryWay(database, search), [['two'], ['two']]);
    await store.close();
  });
});
