import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { MIGRATIONS } from '../../src/store/migrations/index.ts';
import { rowOf } from '../../src/store/rows.ts';
import { migrateSqlite } from '../../src/store/sqlite/sqlite-migrate.ts';
import type { ApiKeyTable, Tables } from '../../src/store/tables.ts';
import { authenticate, openTestKeys, storedKey } from '../support/keys.ts';
import { ROOT } from '../support/process.ts';
import { tempStore } from '../support/temp.ts';

describe('a store of an older version', () => {
  it('of schema 1 keeps its keys, and its secrets are accepted as before', async () => {
    const database = tempStore();
    copyFileSync(join(ROOT, 'test/fixtures/store-schema-1.sqlite'), database);
    const { keys, store } = await openTestKeys({ asServer: true, database });
    const secret = 'svc_wqifxNib6lZ6_5g0Qvs0QPeEguEvodkrFTR4nO6TJscWKPehyUT35Ppf4fq0mS';
    const result = await authenticate(keys, secret);
    assert.deepEqual('principal' in result && result.principal.apiKey, {
      id: '85451bb0-8ad6-484d-a79e-1f7741c97a1f',
      name: 'Base',
      description: 'made by 0.1.0',
      roles: ['ADMIN'],
      permissions: ['DOCKER:READ_ANY'],
      limits: [],
      allowFrom: null,
      publicId: secret.slice(4, 16),
      createdAt: 1795257222649,
      createdBy: null,
      expiresAt: null,
      disabledAt: null,
      managed: false,
      rotation: null,
    });
    const child = await keys.findByName('Child', OPERATOR);
    assert.equal(child?.createdBy, '85451bb0-8ad6-484d-a79e-1f7741c97a1f');
    assert.equal((await keys.update(child.id, { expiresIn: '1h' }, OPERATOR)).after.expiresAt, Date.UTC(2030, 0, 1, 1));
    await store.close();
  });
});

describe('an SQLite store with usage in the order of first use', () => {
  it('keeps it, in the order of the ids, until a key is deleted', async () => {
    const driver = new Database(':memory:');
    const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: driver }) });
    for (const migrate of MIGRATIONS.slice(0, 16)) await migrate(db, 'sqlite');
    const usage = ['b', 'a'].map((id, index) => ({
      key_id: id,
      uses: index,
      last_used_at: 5,
      previous_last_used_at: null,
    }));
    const grants = ['b', 'a'].map((id) => ({ key_id: id, permission: 'ME:READ_OWN', last_used_at: 5 }));
    await db
      .insertInto('api_keys')
      .values(
        ['a', 'b'].map((id) => {
          const { limits: _limits, allow_from: _allowFrom, ...row } = rowOf(storedKey(id));
          return row as ApiKeyTable;
        }),
      )
      .execute();
    await db.insertInto('key_usage').values(usage).execute();
    await db.insertInto('used_grants').values(grants).execute();
    await MIGRATIONS[16]!(db, 'sqlite');
    const read = async () => [
      await db.selectFrom('key_usage').selectAll().execute(),
      await db.selectFrom('used_grants').selectAll().execute(),
    ];
    assert.deepEqual(await read(), [usage.toReversed(), grants.toReversed()]);
    driver.pragma('foreign_keys = on');
    await db.deleteFrom('api_keys').where('id', '=', 'a').execute();
    assert.deepEqual(await read(), [usage.slice(0, 1), grants.slice(0, 1)]);
    await db.destroy();
  });
});

describe('a store that another program makes meanwhile', () => {
  for (const questions of [1, 2]) {
    it(`is recognized as ours after query ${questions}`, async () => {
      const database = tempStore();
      let asked = 0;
      const db = new Kysely<Tables>({
        dialect: new SqliteDialect({ database: new Database(database) }),
        log: async () => {
          asked += 1;
          if (asked === questions) await openTestKeys({ asServer: true, database }).then(({ store }) => store.close());
        },
      });
      await migrateSqlite(db, database, false);
      assert.ok(asked >= questions);
      await db.destroy();
    });
  }
});
