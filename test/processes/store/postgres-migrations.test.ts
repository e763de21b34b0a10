import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { newestSchema } from '../../../src/store/migrations.ts';
import { openStore } from '../../../src/store/open.ts';
import { readPostgresUrl } from '../../../src/store/postgres-address.ts';
import { describeOn } from '../../support/dialects.ts';
import { changeDirectly, readDirectly } from '../../support/direct.ts';
import { openTestKeys } from '../../support/keys.ts';
import { postgresStore, startPostgresServer } from '../../support/postgres.ts';
import { runStoreChild } from '../../support/store-process.ts';

describeOn('postgres', 'the tables of a store', () => {
  it('are made by one of five programs that start at once, which all write into them', async () => {
    const database = postgresStore();
    const names = Array.from({ length: 5 }, (_, index) => `Key ${index}`);
    const results = await Promise.all(names.map((name) => runStoreChild(['write', database, name])));
    assert.deepEqual(
      results,
      names.map((name) => ({ written: [name] })),
    );
    const { keys, store } = await openTestKeys({ asServer: true, database });
    assert.equal((await keys.list({}, OPERATOR)).keys.length, 5);
    assert.deepEqual(await readDirectly(database, 'select * from svc_api_schema'), [
      { one: 1, version: newestSchema() },
    ]);
    await store.close();
  });

  it('are made once: only the first one to open it learns that the store is new', async () => {
    const database = postgresStore();
    const stores = await Promise.all(Array.from({ length: 5 }, () => openStore({ database })));
    assert.equal(stores.filter(({ created }) => created).length, 1);
    for (const store of stores) await store.close();
  });

  it("are not made among another program's tables with the same names", async () => {
    const database = postgresStore();
    await changeDirectly(
      database,
      `create schema ${readPostgresUrl(database).schema}`,
      'create table api_keys (secret text)',
    );
    await assert.rejects(openTestKeys({ asServer: true, database }), {
      code: 'STORE_FOREIGN',
      message: /tables of another program with the same names/,
    });
    assert.equal((await readDirectly(database, "select to_regclass('svc_api_schema') as found"))[0]!['found'], null);
  });

  it('are as they are made also beside the extension, in the schema that a database has from the start', async () => {
    const server = await startPostgresServer();
    try {
      const store = await openStore({ database: server.url });
      assert.deepEqual(await store.schemaDifferences(), []);
      await store.close();
    } finally {
      await server.stop();
    }
  });

  it("are made beside another program's tables with other names", async () => {
    const database = postgresStore();
    await changeDirectly(
      database,
      `create schema ${readPostgresUrl(database).schema}`,
      'create table notes (text text)',
    );
    const { store } = await openTestKeys({ asServer: true, database });
    assert.equal(store.created, true);
    await store.close();
  });

  it('are not made where they must be there already', async () => {
    const database = postgresStore();
    await assert.rejects(openStore({ database, ifMissing: 'fail' }), {
      code: 'STORE_UNAVAILABLE',
      message: /does not exist/,
    });
  });
});
