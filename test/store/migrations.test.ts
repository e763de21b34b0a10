import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Kysely, sql, SqliteDialect } from 'kysely';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { restoreStore } from '../../src/store/backup/restore-store.ts';
import { backUpStore } from '../../src/store/backup/back-up-store.ts';
import type { Check } from '../../src/store/inspection/finding.ts';
import { inspectStore } from '../../src/store/inspection/inspect-store.ts';
import { type Migration, newestSchema } from '../../src/store/migrations.ts';
import { openConnection, openStore } from '../../src/store/open.ts';
import { isPostgresUrl, readPostgresUrl } from '../../src/store/postgres-address.ts';
import { migrateSqlite } from '../../src/store/sqlite/sqlite-schema.ts';
import type { Tables } from '../../src/store/tables.ts';
import { testCli } from '../support/cli.ts';
import { describeAlwaysOnEach } from '../support/dialects.ts';
import { changeDirectly, contentOf, readDirectly } from '../support/direct.ts';
import { authenticate, createPrincipal, openTestKeys } from '../support/keys.ts';
import { withNextSchema } from '../support/next-schema.ts';
import { tempFolder, tempStore } from '../support/temp.ts';
import { STORES } from '../support/features.ts';

const addTeam: Migration = async (db) => void (await sql`alter table api_keys add column team text`.execute(db));

const locationOf = (database: string) => (isPostgresUrl(database) ? readPostgresUrl(database).location : database);

async function setSchema(database: string, version: number): Promise<void> {
  const change = isPostgresUrl(database) ? 'update svc_api_schema set version =' : 'pragma user_version =';
  await changeDirectly(database, `${change} ${version}`);
}

async function schemaOf(database: string): Promise<number> {
  const query = isPostgresUrl(database)
    ? 'select version from svc_api_schema'
    : 'select user_version as version from pragma_user_version';
  return Number((await readDirectly(database, query))[0]!['version']);
}

/** What a check of `doctor` finds, and what it says to do. */
async function findingsOf(database: string, wanted: Check): Promise<[string, string | null][]> {
  const options = { auditKey: undefined, clock: Date.now, isWithoutWebhook: true, observing: [], features: STORES };
  const findings = await inspectStore(database, process.env, options);
  return findings.filter(({ check }) => check === wanted).map(({ status, remedy }) => [status, remedy]);
}

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
        ['backup', '/tmp/b'],
      ]) {
        const { code, stdout } = await cli.run([...args, '--json']);
        const { code: name, error: text } = JSON.parse(stdout) as Record<string, string>;
        assert.deepEqual([code, name, text], [1, 'STORE_OLDER', message]);
      }
      await assert.rejects(openStore({ database: cli.database }), { code: 'STORE_OLDER', message });
      const [[status, remedy] = []] = await findingsOf(cli.database, 'SCHEMA');
      assert.deepEqual([status, /STORE_OLDER/.test(remedy!)], ['failure', true]);
      assert.equal(await contentOf(cli.database), before);
    });
});

describe('a backup of a version that was never released', () => {
  it('is refused with what to do', async () => {
    const cli = testCli();
    await cli.given('A');
    const backup = join(tempFolder(), 'backup.sqlite');
    assert.equal((await cli.run(['backup', backup])).code, 0);
    await setSchema(backup, 27);
    for (const more of [[], ['--without-comparison']]) {
      const { code, stdout } = await cli.run(['restore', backup, '--yes', '--json', ...more]);
      const { code: name, error: message } = JSON.parse(stdout) as Record<string, string>;
      assert.deepEqual([code, name], [1, 'STORE_OLDER']);
      assert.ok(
        message!.startsWith(`The key store ${backup} was made by a version of svc-api that was never released`),
      );
      assert.match(
        message!,
        /Run "svc-api apikey export --with-digests" with that version, and "svc-api apikey import" with/,
      );
    }
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

  it('is migrated neither by a check nor by who only reads', async () => {
    const database = tempStore();
    await openTestKeys({ database }).then(({ store }) => store.close());
    const before = await contentOf(database);
    await withNextSchema(addTeam, async () => {
      const [[status, remedy] = []] = await findingsOf(database, 'SCHEMA');
      assert.equal(status, 'warning');
      assert.match(remedy!, /The next command migrates it, "svc-api apikey backup" too/);
      await assert.rejects(openConnection({ database, mustExist: 'migrated', features: STORES }), {
        code: 'STORE_UNAVAILABLE',
        message: `The key store ${locationOf(database)} was made by an older version of svc-api (schema ${newestSchema() - 1}).`,
      });
    });
    assert.equal(await contentOf(database), before);
  });

  it('gives a newer version what a backup of it has, and none of its schema', async () => {
    const database = tempStore();
    const { keys, store } = await openTestKeys({ database });
    const { secret } = await createPrincipal(keys, { name: 'Kept', roles: ['ADMIN'] });
    await store.close();
    const backup = join(tempFolder(), 'backup.sqlite');
    const from = await openConnection({ database, features: STORES });
    await backUpStore(from, backup, { overwrite: false, auditKey: undefined });
    await from.close();
    await changeDirectly(backup, 'create trigger acts after update on api_keys begin delete from api_keys; end');
    const to = tempStore();
    await withNextSchema(addTeam, async () => {
      const { differences } = await restoreStore({
        backup,
        database: to,
        env: process.env,
        busyTimeoutMs: 0,
        listeners: [],
        features: STORES,
        bringBack: [],
        isBlind: true,
        agree: async () => true,
      });
      assert.deepEqual(differences, [{ type: 'trigger', name: 'acts', difference: 'extra' }]);
      const restored = await openTestKeys({ database: to });
      assert.ok('principal' in (await authenticate(restored.keys, secret)));
      await restored.store.close();
      assert.deepEqual(
        (await findingsOf(to, 'SCHEMA')).map(([status]) => status),
        ['ok'],
      );
    });
    assert.equal(await schemaOf(to), newestSchema() + 1);
    assert.equal(existsSync(`${backup}-wal`), false);
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
