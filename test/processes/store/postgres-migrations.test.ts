import assert from 'node:assert/strict';
import { sql } from 'kysely';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type Migration, MIGRATIONS } from '../../../src/store/migrations/index.ts';
import { openStore } from '../../../src/store/open.ts';
import { readPostgresUrl } from '../../../src/store/postgres/postgres-address.ts';
import { migratePostgres } from '../../../src/store/postgres/postgres-migrate.ts';
import { openPool } from '../../../src/store/postgres/postgres-pool.ts';
import { describeOn } from '../../support/dialects.ts';
import { changeDirectly, readDirectly } from '../../support/direct.ts';
import { authenticate, openTestKeys } from '../../support/keys.ts';
import { postgresStore } from '../../support/postgres.ts';
import { runStoreChild } from '../../support/store-process.ts';

const NEWEST = MIGRATIONS.length;

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
    assert.deepEqual(await readDirectly(database, 'select * from svc_api_schema'), [{ one: 1, version: NEWEST }]);
    await store.close();
  });

  it('are made once: only the first to open it is told that the store is new', async () => {
    const database = postgresStore();
    const stores = await Promise.all(Array.from({ length: 5 }, () => openStore({ database })));
    assert.equal(stores.filter(({ created }) => created).length, 1);
    for (const store of stores) await store.close();
  });

  it('are brought to a newer schema while the version before goes on', async () => {
    const database = postgresStore();
    const { keys, store } = await openTestKeys({ asServer: true, database });
    const done = new AbortController();
    const working = (async () => {
      let made = 0;
      for (; !done.signal.aborted || made === 0; made += 1) {
        const { key: secret, apiKey: key } = await keys.create({ name: `Key ${made}`, roles: ['GUEST'] }, OPERATOR);
        assert.ok('principal' in (await authenticate(keys, secret)));
        await keys.delete([key.id], OPERATOR);
      }
    })();
    const newer: Migration[] = [
      ...MIGRATIONS,
      async (db) => void (await sql`alter table api_keys add column team text`.execute(db)),
    ];
    const { location, schema, config } = readPostgresUrl(database);
    const pools = await Promise.all(Array.from({ length: 5 }, () => openPool(config)));
    await Promise.all(pools.map((db) => migratePostgres(db, { location, schema, migrations: newer })));
    for (const db of pools) await db.destroy();
    await keys.create({ name: 'After', roles: ['GUEST'] }, OPERATOR);
    done.abort();
    await working;
    assert.ok(!('broken' in (await keys.verifyAuditLog())));
    await store.close();
    await assert.rejects(openTestKeys({ asServer: true, database }), {
      code: 'STORE_NEWER',
      message: `The key store ${location} was made by a newer version of svc-api (schema ${NEWEST + 1}; this one knows ${NEWEST}). Update svc-api.`,
    });
  });

  it('are not made among those of another program that have their names', async () => {
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

  it('are made beside those of another program that have other names', async () => {
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
