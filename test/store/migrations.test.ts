import assert from 'node:assert/strict';
import Database from 'better-sqlite3';
import { Kysely, sql, SqliteDialect } from 'kysely';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { type Migration, newestSchema } from '../../src/store/migrations.ts';
import { openConnection, openStore } from '../../src/store/open.ts';
import { isPostgresUrl, readPostgresUrl } from '../../src/store/postgres-address.ts';
import { migrateSqlite } from '../../src/store/sqlite/sqlite-schema.ts';
import type { Tables } from '../../src/store/tables.ts';
import { testCli } from '../support/cli.ts';
import { describeAlwaysOnEach } from '../support/dialects.ts';
import { contentOf } from '../support/direct.ts';
import { authenticate, createPrincipal, openTestKeys } from '../support/keys.ts';
import { schemaOf, setSchema, withNextSchema } from '../support/next-schema.ts';
import { tempStore } from '../support/temp.ts';
import { STORES } from '../support/features.ts';

const addTeam: Migration = async (db) => void (await sql`alter table api_keys add column team text`.execute(db));

const locationOf = (database: string) => (isPostgresUrl(database) ? readPostgresUrl(database).location : database);

describeAlwaysOnEach('a store of a version that was never released', () => {
  for (const version of [1, 27, 34])
    it(`is refused with what to do, and stays as it is, with schema ${version}`, async () => {
      const cli = testCli();
      await cli.given('A');
      await setSchema(cli.database, version);
      const before = await contentOf(cli.database);
      const message =
        `The key store ${locationOf(cli.database)} was made by a version of svc-api that was never released ` +
        `(schema ${version}). Run "svc-api apikey export --with-digests" with that version, and "svc-api apikey import" with this one, into a new store.`;
      for (const args of [
        ['apikey', 'list'],
        ['apikey', 'create', '--name', 'B', '--roles', 'ADMIN'],
      ]) {
        const { code, stdout } = await cli.run([...args, '--json']);
        const { code: name, error: text } = JSON.parse(stdout) as Record<string, string>;
        assert.deepEqual([code, name, text], [1, 'STORE_OLDER', message]);
      }
      await assert.rejects(openStore({ database: cli.database }), { code: 'STORE_OLDER', message });
      assert.equal(await contentOf(cli.database), before);
    });
});

describeAlwaysOnEach('a store of the version before', () => {
  it('is brought to a newer schema by one of several programs, while a server of that version goes on', async () => {
    const database = tempStore();
    const { keys, store } = await openTestKeys({ asServer: true, database });
    const { secret } = await createPrincipal(keys, { name: 'Before', roles: ['ADMIN'] });
    const done = new AbortController();
    const working = (async () => {
      let made = 0;
      for (; !done.signal.aborted || made === 0; made += 1) {
        const { key: other, apiKey: key } = await keys.create({ name: `Key ${made}`, roles: ['GUEST'] }, OPERATOR);
        assert.ok('principal' in (await authenticate(keys, other)));
        await keys.delete([key.id], OPERATOR);
      }
    })();
    let runs = 0;
    const migrate: Migration = async (db, dialect) => {
      await addTeam(db, dialect);
      runs += 1;
    };
    await withNextSchema(migrate, async () => {
      const stores = await Promise.all(Array.from({ length: 5 }, () => openTestKeys({ asServer: true, database })));
      for (const newer of stores) {
        assert.equal(newer.store.created, false);
        assert.ok('principal' in (await authenticate(newer.keys, secret)));
        await newer.store.close();
      }
    });
    assert.equal(runs, 1);
    await keys.create({ name: 'After', roles: ['GUEST'] }, OPERATOR);
    done.abort();
    await working;
    assert.ok(!('broken' in (await keys.audit.check()).verification));
    await store.close();
    assert.equal(await schemaOf(database), newestSchema() + 1);
    await assert.rejects(openStore({ database }), {
      code: 'STORE_NEWER',
      message:
        `The key store ${locationOf(database)} was made by a newer version of svc-api ` +
        `(schema ${newestSchema() + 1}; this one knows ${newestSchema()}). Update svc-api.`,
    });
  });

  it('is not migrated by a program that only reads', async () => {
    const database = tempStore();
    await openTestKeys({ database }).then(({ store }) => store.close());
    const before = await contentOf(database);
    await withNextSchema(addTeam, async () => {
      await assert.rejects(openConnection({ database, mustExist: 'migrated', features: STORES }), {
        code: 'STORE_UNAVAILABLE',
        message: `The key store ${locationOf(database)} was made by an older version of svc-api (schema ${newestSchema() - 1}).`,
      });
    });
    assert.equal(await contentOf(database), before);
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
      await migrateSqlite(db, { location: database, mustExist: false, features: STORES });
      assert.ok(asked >= questions);
      await db.destroy();
    });
  }
});
