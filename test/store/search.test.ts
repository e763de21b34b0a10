import assert from 'node:assert/strict';
import { CompiledQuery } from 'kysely';
import type { StoredKey } from '../../src/keys/key/api-key.ts';
import type { KeyFilter } from '../../src/keys/repository/repository.ts';
import { type Connection, connectionOver, type DialectName } from '../../src/store/connection.ts';
import { createKeyRepository } from '../../src/store/key-repository.ts';
import { openConnection, openStore, type Store } from '../../src/store/open.ts';
import { findKeys } from '../../src/store/search-keys.ts';
import { describeOn, describeAlwaysOnEach } from '../support/dialects.ts';
import { changeDirectly } from '../support/direct.ts';
import { idOf, storedKey } from '../support/keys.ts';
import { tempStore } from '../support/temp.ts';

describeAlwaysOnEach('a search of keys', () => {
  let database: string;
  let store: Store;
  beforeEach(async () => {
    database = tempStore();
    store = await openStore({ database });
  });
  afterEach(() => store.close());

  const insert = (keys: readonly StoredKey[]) => store.repository.write((writer) => writer.insert(keys));

  it('finds keys that were changed or deleted by SQL', async () => {
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
      const found = await store.repository.list({ search, limit: 10_000 });
      assert.deepEqual(
        found.map(({ id }) => id),
        ids.map(idOf),
      );
    }
  });
});

/** A store with thousands of keys and current statistics. */
async function analyzedStore(): Promise<Connection> {
  const database = await filledStore();
  await changeDirectly(database, 'analyze');
  return openConnection({ database });
}

/** The same without statistics, as during an import. */
async function filledStore(): Promise<string> {
  const database = tempStore();
  const store = await openStore({ database });
  const keys = Array.from({ length: 5000 }, (_, index) =>
    storedKey(`${index}`, {
      name: `Service ${index} of a team`,
      createdAt: index,
      roles: [index === 4999 ? 'ADMIN' : 'GUEST'],
    }),
  );
  await store.repository.write((writer) => writer.insert(keys));
  await store.close();
  return database;
}

/** A connection that records its statements and their plans. */
function explained(connection: Connection, dialect: DialectName) {
  const statements: string[] = [];
  const plans: string[] = [];
  const explain = dialect === 'sqlite' ? 'explain query plan' : 'explain';
  const collecting = connectionOver(connection, {
    run: (work) =>
      connection.run(async (db) => {
        const queries: CompiledQuery[] = [];
        const result = await work(
          db.withPlugin({
            transformQuery: ({ node, queryId }) => {
              queries.push(db.getExecutor().compileQuery(node, queryId));
              return node;
            },
            transformResult: async ({ result }) => result,
          }),
        );
        for (const { sql: text, parameters } of queries) {
          const { rows } = await db.executeQuery<object>(CompiledQuery.raw(`${explain} ${text}`, [...parameters]));
          statements.push(text);
          plans.push(...rows.map((row) => String(Object.values(row).at(-1))));
        }
        return result;
      }),
  });
  return { collecting, statements, plans };
}

describeOn('sqlite', 'each filter of keys', () => {
  it('only reads by indexes', async () => {
    const connection = await analyzedStore();
    const { collecting, plans } = explained(connection, 'sqlite');
    const now = 1;
    const filters: Record<string, KeyFilter> = {
      api_keys_in_order: { search: 'zq', roles: ['ADMIN'], status: { is: 'DISABLED', now } },
      api_keys_by_creator: { ownedBy: idOf('1') },
      api_keys_by_expiry: { expires: { after: now, until: 2 } },
      'key_labels .*label=': { tags: ['a=b'] },
      sqlite_autoindex_api_keys: { neverUsed: true },
      'key_labels .*label=. AND': { owner: 'Service 7 of a team' },
    };
    for (const [index, filter] of Object.entries(filters)) {
      plans.length = 0;
      await findKeys(collecting, { ...filter, limit: 50 });
      assert.match(plans.join('\n'), new RegExp(index));
      for (const plan of plans) assert.doesNotMatch(plan, /^SCAN (api_keys|stored|key_labels)\b(?! USING)/);
    }
    await connection.close();
  });
});

describeAlwaysOnEach('a filter that few keys match', (dialect) => {
  it('finds expired keys by the index of expiry, not in the order of all keys', async () => {
    const connection = await analyzedStore();
    const { collecting, plans, statements } = explained(connection, dialect);
    assert.deepEqual(await findKeys(collecting, { status: { is: 'EXPIRED', now: 1 }, limit: 50 }), []);
    assert.match(plans.join('\n'), /api_keys_by_expiry/);
    assert.deepEqual(
      statements.filter((statement) => / offset /.test(statement)),
      [],
    );
    await connection.close();
  });

  it('finds expired keys with all that they created, and no others', async () => {
    const store = await openStore({ database: tempStore() });
    const key = (name: string, createdBy: string | null, expiresAt: number | null) =>
      storedKey(name, { createdBy: createdBy && idOf(createdBy), expiresAt });
    await store.repository.write((writer) =>
      writer.insert([
        key('expired', null, 5),
        key('child', 'expired', null),
        key('grandchild', 'child', 9),
        key('later', null, 6),
        key('never', null, null),
        key('its child', 'never', 4),
      ]),
    );
    const found = async (more: KeyFilter = {}) =>
      (await store.repository.list({ status: { is: 'EXPIRED', now: 5 }, limit: 9, ...more })).map(({ name }) => name);
    assert.deepEqual((await found()).toSorted(), ['child', 'expired', 'grandchild', 'its child']);
    assert.deepEqual(await found({ createdBy: idOf('never') }), ['its child']);
    assert.deepEqual(await found({ search: 'grand' }), ['grandchild']);
    await store.close();
  });
});

describeOn('postgres', 'a filter by a role and by what depends on creators', () => {
  it('reads all keys once if few have the role, and stops early if many have it', async () => {
    const connection = await analyzedStore();
    const { collecting, statements } = explained(connection, 'postgres');
    const found = async (role: string) => {
      statements.length = 0;
      const keys = await findKeys(collecting, { roles: [role], status: { is: 'ACTIVE', now: 1 }, limit: 2 });
      return keys.map(({ name }) => name);
    };
    assert.deepEqual(await found('ADMIN'), ['Service 4999 of a team']);
    assert.ok(!statements.some((statement) => / offset /.test(statement)));
    assert.deepEqual(await found('GUEST'), ['Service 0 of a team', 'Service 1 of a team']);
    await connection.close();
  });
});

describeAlwaysOnEach('the digests of many secrets', (dialect) => {
  it('are looked up by indexes before the database has statistics', async () => {
    const connection = await openConnection({ database: await filledStore() });
    const { collecting, plans } = explained(connection, dialect);
    const digests = Array.from({ length: 200 }, (_, index) => storedKey(`${index}`).digest);
    assert.equal((await createKeyRepository(collecting).findByDigests(digests)).length, 200);
    assert.match(plans.join('\n'), /api_keys_by_previous_digest/);
    assert.doesNotMatch(plans.join('\n'), /Seq Scan|SCAN api_keys\b/);
    await connection.close();
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
      assert.deepEqual(
        (await store.repository.list({ search, limit: 10_000 })).map(({ name }) => name),
        ['two'],
        search,
      );
    await store.close();
  });
});

describeAlwaysOnEach('a search of keys', () => {
  it('does not find keys with only parts of a text, or with the parts elsewhere', async () => {
    const store = await openStore({ database: tempStore() });
    const others = Array.from({ length: 500 }, (_, index) => storedKey(`other ${index}`));
    const names = ['one 123 456', '456 123', 'ONE 1234 56', '123_456', '123%456', 'x123 456y', '123\\456'];
    await store.repository.write((writer) =>
      writer.insert([
        ...others,
        ...names.map((name, index) => storedKey(name, { createdAt: index, roles: ['GUEST'] })),
      ]),
    );
    const found = async (search: string, more = {}) =>
      (await store.repository.list({ search, limit: 9, ...more })).map(({ name }) => name);
    assert.deepEqual(await found('123 456'), ['one 123 456', 'x123 456y']);
    assert.deepEqual(await found('123_456'), ['123_456']);
    assert.deepEqual(await found('123%4'), ['123%456']);
    assert.deepEqual(await found('123\\4'), ['123\\456']);
    assert.deepEqual(await found('123 456', { limit: 1 }), ['one 123 456']);
    assert.deepEqual(await found('123 456', { after: { createdAt: 0, id: idOf(names[0]!) } }), ['x123 456y']);
    assert.deepEqual(await found('123 456', { roles: ['ADMIN'] }), []);
    assert.deepEqual(await found('123 456', { status: { is: 'ACTIVE', now: 1 } }), ['one 123 456', 'x123 456y']);
    await store.close();
  });
});
