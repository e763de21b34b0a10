import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import type { StoredKey } from '../../src/keys/key/api-key.ts';
import type { KeyWriter } from '../../src/keys/repository/repository.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import { describeOn, describeAlwaysOnEach } from '../support/dialects.ts';
import { changeDirectly, readDirectly } from '../support/direct.ts';
import { idOf, openTestKeys, storedKey } from '../support/keys.ts';
import { foundInEveryWay } from '../support/searches.ts';
import { tempStore } from '../support/temp.ts';

describeAlwaysOnEach('a search of keys', (dialect) => {
  let database: string;
  let store: Store;
  beforeEach(async () => {
    database = tempStore();
    store = await openStore({ database });
  });
  afterEach(() => store.close());

  const insert = (keys: readonly StoredKey[]) => store.repository.write((writer) => writer.insert(keys));

  it('finds what was changed or deleted by SQL', async () => {
    await insert([storedKey('one'), storedKey('two'), storedKey('three')]);
    await changeDirectly(
      database,
      "update api_keys set short_text = 'MEANWHILE' where name = 'one'",
      "delete from api_keys where name = 'two'",
      `insert into api_keys (id, name, roles, permissions, public_id, digest, created_at, managed, short_text)
        values ('${idOf('four')}', 'four', '[]', '[]', 'four', 'four', 1, 0, 'BY HAND')`,
    );
    for (const [search, ids] of [
      ['meanwhile', ['one']],
      ['one', []],
      ['two', []],
      ['y han', ['four']],
    ] as const) {
      for (const found of await foundInEveryWay(database, { search, limit: 10_000 }))
        assert.deepEqual(found, ids.map(idOf));
    }
  });

  it('has an index that belongs to the rows', async () => {
    await insert(Array.from({ length: 50 }, (_, index) => storedKey(String(index))));
    if (dialect === 'sqlite') {
      await changeDirectly(database, 'delete from api_keys where rowid % 3 = 0', 'vacuum');
      const [rows] = await readDirectly(
        database,
        `select (select group_concat(rowid order by rowid) from api_keys) as keys, (select group_concat(id order by id)
          from api_keys_search_docsize where id in (select rowid from api_keys)) as found`,
      );
      assert.equal(rows!['found'], rows!['keys']);
    } else {
      const plan = await readDirectly(
        database,
        "select indexdef as index from pg_indexes where schemaname = current_schema() and indexname = 'api_keys_by_search_text'",
      );
      assert.match(String(plan[0]!['index']), /gin \(COALESCE\(short_text, long_text\) public\.gin_trgm_ops\)/);
    }
  });
});

describeOn('sqlite', 'the index of searches', () => {
  it('loses what deleted keys leave in it while keys are created, and all of it with the last one', async () => {
    const { store, database } = await openTestKeys();
    const write = (work: (writer: KeyWriter) => Promise<void>) => store.repository.write(work);
    const ids = Array.from({ length: 100 }, (_, index) => idOf(`key ${index}`));
    await write((writer) => writer.insert(ids.map((id) => storedKey(id))));
    const left = async () => {
      const [row] = await readDirectly(
        database,
        'select count(*) as count from api_keys_search_docsize where id not in (select rowid from api_keys)',
      );
      return Number(row!['count']);
    };
    await write((writer) => writer.delete(ids.slice(0, 99)));
    assert.equal(await left(), 99);
    for (let count = 0; (await left()) > 20; count += 1) {
      assert.ok(count < 1000, `${await left()} are left`);
      await write((writer) => writer.insert([storedKey(`new ${count}`)]));
    }
    const rest = await store.repository.list({ limit: 10_000 });
    await write((writer) => writer.delete(rest.map(({ id }) => id)));
    assert.equal(await left(), 0);
    await store.close();
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
      (await store.repository.list({ search: 'two', limit: 9 })).map(({ name }) => name),
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
    await changeDirectly(
      database,
      "update api_keys set short_text = 'FIRST' || char(0) || 'SECOND' where name = 'two'",
    );
    for (const search of ['first', 'second'])
      assert.deepEqual(await foundInEveryWay(database, { search, limit: 10_000 }), [[idOf('two')], [idOf('two')]]);
    await store.close();
  });
});
