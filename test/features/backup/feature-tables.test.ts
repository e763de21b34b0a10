import assert from 'node:assert/strict';
import { join } from 'node:path';
import { sql } from 'kysely';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { declarePort } from '../../../src/keys/basics/port.ts';
import { stepsOfPlugin } from '../../../src/keys/changes/steps-of-plugins.ts';
import { backUpStore } from '../../../src/features/backup/back-up-store.ts';
import { restoreStore } from '../../../src/features/backup/restore-store.ts';
import { copyStore } from '../../../src/features/backup/copy-store.ts';
import { openConnection, openStore } from '../../../src/store/open.ts';
import { requireKept } from '../../../src/store/features.ts';
import { type FeatureInStore, portOfPlugin, portOfStore } from '../../../src/store/port-of-store.ts';
import type { FeatureMigration } from '../../../src/store/tables.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, contentOf, readDirectly } from '../../support/direct.ts';
import { STORES } from '../../support/features.ts';
import { openTestKeys } from '../../support/keys.ts';
import { tempFolder, tempStore } from '../../support/temp.ts';

interface Visits {
  counts(): Promise<Record<string, number>>;
}
interface VisitsWriter extends Visits {
  count(keyId: string): Promise<void>;
}
const VISITS = declarePort<Visits, VisitsWriter>('visits');
const TABLE = 'plugin_svc_api_visits_counts';

type Own = { [TABLE]: { key_id: string; visits: number; note: string | null } };

const first: FeatureMigration = {
  name: 'counts',
  async up(db, { keyId }) {
    await db.schema
      .createTable(TABLE)
      .addColumn('key_id', keyId as never, (column) =>
        column.primaryKey().notNull().references('api_keys.id').onDelete('cascade'),
      )
      .addColumn('visits', 'bigint', (column) => column.notNull())
      .execute();
  },
};
const second: FeatureMigration = {
  name: 'notes',
  up: async (db, { text }) => void (await sql`alter table ${sql.table(TABLE)} add column note ${text}`.execute(db)),
};

/** A plugin that counts visits, with some of its migrations. */
function visits(...migrations: FeatureMigration[]): FeatureInStore {
  return {
    feature: 'svc-api-visits',
    tables: { [TABLE]: ['key_id'] },
    migrations,
    ports: [
      {
        port: VISITS,
        read: ({ run }) => ({
          counts: () =>
            run(async (db) => {
              const rows = await db.withTables<Own>().selectFrom(TABLE).selectAll().orderBy('key_id').execute();
              return Object.fromEntries(rows.map(({ key_id: id, visits: count }) => [id, Number(count)]));
            }),
        }),
        write: ({ db }) => ({
          count: async (keyId: string) =>
            void (await db
              .withTables<Own>()
              .insertInto(TABLE)
              .values({ key_id: keyId, visits: 1 })
              .onConflict((conflict) =>
                conflict.column('key_id').doUpdateSet({ visits: sql`${sql.ref(`${TABLE}.visits`)} + 1` }),
              )
              .execute()),
        }),
      },
    ],
  };
}

/** A migration that adds a column. */
function adds(column: string): FeatureMigration {
  return {
    name: 'added',
    up: async (db, { dialect }) => {
      const definition = column.replace('$keyId', dialect === 'sqlite' ? 'text' : 'uuid');
      await sql`alter table ${sql.table(TABLE)} add column ${sql.raw(definition)}`.execute(db);
    },
  };
}

/** The plugin with a table of other columns. */
function makes(columns: string): FeatureInStore {
  return visits({
    name: 'made',
    up: async (db) => void (await sql`create table ${sql.table(TABLE)} (${sql.raw(columns)})`.execute(db)),
  });
}

const withVisits = [...STORES, visits(first, second)];

async function countsIn(database: string): Promise<Record<string, number>> {
  const store = await openStore({ database }, { features: withVisits });
  try {
    assert.deepEqual(await store.schemaDifferences(), []);
    return await store.repository.port(VISITS).counts();
  } finally {
    await store.close();
  }
}

/** A copy of a store, and a store restored from its backup. */
async function copiesOf(
  database: string,
  features: readonly FeatureInStore[],
  without: readonly FeatureInStore[] = features,
): Promise<string[]> {
  const backup = join(tempFolder(), 'backup');
  const from = await openConnection({ database, features: without });
  await backUpStore(from, backup, { overwrite: false, auditKey: undefined });
  const [copied, restored] = [tempStore(), tempStore()];
  const to = await openConnection({ database: copied, features: without });
  await copyStore(from, to);
  for (const each of [from, to]) await each.close();
  await restoreStore({
    backup,
    database: restored,
    env: process.env,
    busyTimeoutMs: 0,
    listeners: [],
    features,
    bringBack: [],
    isBlind: true,
    agree: async () => true,
  });
  return [copied, restored];
}

describeOnEach('the tables of a plugin', (dialect) => {
  let database: string;
  let ids: string[];
  beforeEach(async () => {
    const test = await openTestKeys();
    ({ database } = test);
    ids = [];
    for (const name of ['One', 'Two'])
      ids.push((await test.keys.create({ name, roles: ['GUEST'] }, OPERATOR)).apiKey.id);
    await test.store.close();
  });

  const count = async (features: readonly FeatureInStore[], ...keyIds: readonly string[]) => {
    const store = await openStore({ database }, { features });
    await store.repository.write(async (writer) => {
      for (const id of keyIds) await writer.port(VISITS).count(id);
    });
    await store.close();
  };
  const withoutIt = async (work: (keys: Awaited<ReturnType<typeof openTestKeys>>) => Promise<void>) => {
    const test = await openTestKeys({ database });
    assert.deepEqual(await test.store.schemaDifferences(), []);
    await work(test);
    await test.store.close();
  };

  it('are made once, by its migrations in their order, and read and written through its port', async () => {
    await count([...STORES, visits(first)], ids[0]!, ids[0]!);
    await count(withVisits, ids[1]!);
    await count(withVisits);
    assert.deepEqual(await countsIn(database), { [ids[0]!]: 2, [ids[1]!]: 1 });
  });

  it('are named with the step whose statement the database refuses; a failure of the database is its own', async () => {
    const STATEMENT = declarePort<object, { run(statement: string): Promise<unknown> }>('statement');
    const ports: FeatureInStore['ports'] = [
      portOfStore({
        port: STATEMENT,
        read: () => ({}),
        write: ({ db }) => ({ run: (statement) => sql.raw(statement).execute(db) }),
      }),
    ];
    const store = await openStore(
      { database },
      { features: [...STORES, visits(first), { feature: 'svc-api-x', ports }] },
    );
    const inStep = (...statements: string[]) =>
      store.repository.write(async (writer) => {
        const { deleted } = stepsOfPlugin('svc-api-visits', {
          deleted: async () => {
            for (const statement of statements.splice(0)) await writer.port(STATEMENT).run(statement);
          },
        });
        await deleted!(writer as never, []);
      });
    const named = { code: 'FEATURE_FAILED', message: /onKeys\.deleted of svc-api-visits/ };
    await assert.rejects(inStep(`insert into ${TABLE} (key_id) values ('${ids[0]}')`), named);
    await assert.rejects(inStep('select * from no_such_table'), named);
    if (dialect === 'postgres') await inStep('select pg_terminate_backend(pg_backend_pid())');
    else
      await assert.rejects(
        inStep('pragma max_page_count = 1', 'create table plugin_large as select zeroblob(1000000) as large'),
        { code: 'STORE_FULL' },
      );
    await store.close();
  });

  it('are written through a port that names the plugin where it fails, unless the database does', async () => {
    const STATEMENT = declarePort<object, { run(statement: string): Promise<unknown> }>('statement');
    const port = portOfStore({
      port: STATEMENT,
      read: () => ({}),
      write: ({ db }) => ({ run: (statement) => sql.raw(statement).execute(db) }),
      forgetBefore: () => Promise.reject(new TypeError('rows is undefined')),
    });
    const store = await openStore(
      { database },
      { features: [...STORES, visits(first), { feature: 'svc-api-x', ports: [portOfPlugin('svc-api-x', port)] }] },
    );
    const run = (...statements: string[]) =>
      store.repository.write(async (writer) => {
        for (const statement of statements.splice(0)) await writer.port(STATEMENT).run(statement);
      });
    const named = { code: 'FEATURE_FAILED', message: /^The port statement of svc-api-x failed: / };
    const insert = `insert into ${TABLE} (key_id, visits) values ('${ids[0]}', 1)`;
    await assert.rejects(run(insert, insert), named);
    await assert.rejects(
      store.repository.write((writer) => writer.forgetBefore(0, 1)),
      named,
    );
    if (dialect === 'postgres') await run('select pg_terminate_backend(pg_backend_pid())');
    else
      await assert.rejects(
        run('pragma max_page_count = 1', 'create table plugin_large as select zeroblob(1000000) as large'),
        { code: 'STORE_FULL' },
      );
    await store.close();
  });

  it('are read through a port that names the plugin where it fails, unless the database does', async () => {
    const READ = declarePort<{ fail(): Promise<never>; end(): Promise<unknown> }>('reading');
    let ends = 0;
    const port = portOfStore({
      port: READ,
      read: ({ run }) => ({
        fail: () => run(() => Promise.reject(new TypeError('rows is undefined'))),
        end: () =>
          run(async (db) => (ends++ > 0 ? ends : sql.raw('select pg_terminate_backend(pg_backend_pid())').execute(db))),
      }),
    });
    const store = await openStore(
      { database },
      { features: [...STORES, { feature: 'svc-api-x', ports: [portOfPlugin('svc-api-x', port)] }] },
    );
    const reading = store.repository.port(READ);
    await assert.rejects(reading.fail(), {
      code: 'FEATURE_FAILED',
      message: 'The port reading of svc-api-x failed: rows is undefined',
    });
    if (dialect === 'postgres') assert.equal(await reading.end(), 2);
    await store.close();
  });

  it('stay while it is gone, and follow keys', async () => {
    await count(withVisits, ...ids);
    await withoutIt(async ({ keys }) => void (await keys.delete([ids[1]!], OPERATOR)));
    assert.deepEqual(await countsIn(database), { [ids[0]!]: 1 });
  });

  it('come back with a key from a backup as the step of the plugin says', async () => {
    await count(withVisits, ids[0]!, ids[0]!, ids[1]!);
    const backup = join(tempFolder(), 'backup');
    const from = await openConnection({ database, features: withVisits });
    await backUpStore(from, backup, { overwrite: false, auditKey: undefined });
    await from.close();
    await withoutIt(async ({ keys }) => void (await keys.delete(ids, OPERATOR)));
    assert.deepEqual(await countsIn(database), {});
    let restored: readonly string[] = [];
    await restoreStore({
      backup,
      database,
      env: process.env,
      busyTimeoutMs: 0,
      listeners: [
        { restoring: async (_, given) => void (restored = given) },
        {
          restoring: async (writer, given) => {
            const counts = await writer.port(VISITS).counts();
            const visited = given.flatMap((id) => Array.from({ length: counts[id]! }, () => id));
            return async (transaction) => {
              for (const id of visited) await transaction.port(VISITS).count(id);
            };
          },
        },
      ],
      features: withVisits,
      bringBack: ['One'],
      isBlind: false,
      agree: async () => true,
    });
    assert.deepEqual(restored, [ids[0]]);
    assert.deepEqual(await countsIn(database), { [ids[0]!]: 2 });
    await withoutIt(async ({ keys }) => assert.ok(await keys.findById(ids[0]!, OPERATOR)));
  });

  it('come back from a backup and a copy that were made without it', async () => {
    await count([...STORES, visits(first)], ...ids);
    for (const place of await copiesOf(database, STORES)) {
      const without = await openTestKeys({ database: place });
      await without.keys.delete([ids[1]!], OPERATOR);
      await without.store.close();
      assert.deepEqual(await countsIn(place), { [ids[0]!]: 1 });
      assert.deepEqual(await countsIn(place), { [ids[0]!]: 1 });
    }
  });

  it('are copied and restored with the rows that they have, also where a migration makes some', async () => {
    const fills: FeatureMigration = {
      name: 'fills',
      up: async (db) =>
        void (await sql`insert into ${sql.table(TABLE)} (key_id, visits) select id, 7 from api_keys
          where name = 'One'`.execute(db)),
    };
    const root: FeatureMigration = {
      name: 'root',
      up: async (db) => {
        await sql`create table ${sql.table(`${TABLE}_by_name`)} (name text not null primary key)`.execute(db);
        await sql`insert into ${sql.table(`${TABLE}_by_name`)} values ('all'), ('none')`.execute(db);
      },
    };
    const plugin = visits(first, second, fills, root);
    const features = [...STORES, { ...plugin, tables: { ...plugin.tables, [`${TABLE}_by_name`]: ['name'] } }];
    await count(features, ids[1]!);
    await changeDirectly(database, `delete from ${TABLE}_by_name where name = 'none'`);
    for (const [from, to] of [
      [features, features],
      [features, STORES],
    ])
      for (const place of await copiesOf(database, from!, to)) {
        const store = await openStore({ database: place }, { features });
        assert.deepEqual(await store.repository.port(VISITS).counts(), { [ids[0]!]: 7, [ids[1]!]: 1 });
        await store.close();
        assert.deepEqual(await readDirectly(place, `select name from ${TABLE}_by_name`), [{ name: 'all' }]);
      }
  });

  it('come back where a newer version of it has renamed one', async () => {
    const days = 'plugin_svc_api_visits_a_day';
    const third: FeatureMigration = {
      name: 'days',
      up: async (db, { keyId }) =>
        void (await sql`create table ${sql.table(days)} (day bigint not null, key_id ${keyId} not null
          references ${sql.table(TABLE)} (key_id) on delete cascade, primary key (day, key_id))`.execute(db)),
    };
    const renames: FeatureMigration = {
      name: 'renames',
      up: (db) => db.schema.alterTable(TABLE).renameTo(`${TABLE}_now`).execute(),
    };
    const old = { ...visits(first, third), tables: { [TABLE]: ['key_id'], [days]: ['day', 'key_id'] } };
    const now = {
      ...old,
      tables: { [`${TABLE}_now`]: ['key_id'], [days]: ['day', 'key_id'] },
      migrations: [...old.migrations!, renames],
    };
    await count([...STORES, old], ...ids);
    await changeDirectly(database, `insert into ${days} values (20000, '${ids[0]!}')`);
    for (const place of await copiesOf(database, [...STORES, now], STORES)) {
      await (await openStore({ database: place }, { features: [...STORES, now] })).close();
      const visited = await readDirectly(place, `select key_id from ${TABLE}_now order by key_id`);
      assert.deepEqual(
        visited.map(({ key_id: id }) => id),
        ids.toSorted(),
      );
      assert.equal((await readDirectly(place, `select day from ${days}`)).length, 1);
      assert.deepEqual(await readDirectly(place, 'select feature from kept_rows'), []);
    }
  });

  it('are reported as damage of the store if its record of them is broken', async () => {
    await count(withVisits, ...ids);
    for (const state of ['{}', 'null', '{"migrations":[1],"tables":{},"transientTables":[]}']) {
      await changeDirectly(database, `update svc_api_features set state = '${state}' where name = 'svc-api-visits'`);
      for (const features of [withVisits, [...STORES, { feature: 'svc-api-visits' }]])
        await assert.rejects(openStore({ database }, { features }), {
          code: 'STORE_CORRUPT',
          message: /svc-api-visits/,
        });
    }
  });

  it('are named if their rows cannot be put back', async () => {
    await count(withVisits, ...ids);
    const [copied] = await copiesOf(database, STORES);
    await changeDirectly(copied!, `update kept_rows set "row" = '{"key_id":null,"visits":null}'`);
    const opened = openStore({ database: copied! }, { features: withVisits });
    await assert.rejects(opened, { code: 'FEATURE_INVALID', message: /svc-api-visits .*rows.*null/i });
    assert.equal((await readDirectly(copied!, 'select feature from kept_rows')).length, 2);
  });

  for (const [what, plugin, message] of [
    [
      'that fails',
      visits(first, { name: 'bad', up: async (db) => void (await sql`select nothing`.execute(db)) }),
      /svc-api-visits is invalid. Its migration "bad" failed: .*nothing/,
    ],
    [
      'that makes no table',
      visits({ name: 'none', up: async () => {} }),
      /svc-api-visits .*do not create the table plugin_svc_api_visits_counts/,
    ],
    [
      'that makes another table',
      visits(first, {
        name: 'other',
        up: async (db) => void (await sql`create table other_one (a integer)`.execute(db)),
      }),
      /svc-api-visits .*create other_one, which "tables" does not name/,
    ],
    [
      'that adds a column to a table of svc-api',
      visits(first, {
        name: 'team',
        up: async (db) => void (await sql`alter table api_keys add column team text`.execute(db)),
      }),
      /svc-api-visits .*change the table api_keys, which is not its own/,
    ],
    [
      'that renames a table of svc-api',
      visits(first, {
        name: 'moved',
        up: async (db) => void (await sql.raw('alter table api_keys rename to old_keys').execute(db)),
      }),
      /svc-api-visits .*(create old_keys|change the table api_keys)/,
    ],
    [
      'with a type that cannot be copied',
      visits(first, {
        name: 'flag',
        up: async (db) => void (await sql`alter table ${sql.table(TABLE)} add column seen boolean`.execute(db)),
      }),
      /svc-api-visits .*column seen of the type boolean/,
    ],
    [
      'with a number of four bytes',
      visits(first, adds('share real')),
      /svc-api-visits .*column share of the type real. Use .*double precision/i,
    ],
    [
      'with another key than it says',
      makes('id bigint not null primary key, key_id bigint not null'),
      /does not have key_id as its primary key/,
    ],
    ['without a key', makes('key_id bigint not null'), /key_id.*primary key/],
    [
      'whose rows keep keys from being deleted',
      visits(first, adds('other $keyId references api_keys (id)')),
      /cascade/,
    ],
    [
      'with rows that refer to rows of the same table',
      visits(first, adds(`other $keyId references ${TABLE} (key_id) on delete cascade`)),
      /plugin_svc_api_visits_counts.* refers to .*before/,
    ],
    [
      'with a column that the database fills',
      makes('key_id bigint not null primary key, twice bigint generated always as (key_id * 2) stored'),
      /column twice/,
    ],
  ] as const)
    it(`of a migration ${what} are refused by name, and the store stays as it is`, async () => {
      const before = await contentOf(database);
      await assert.rejects(openStore({ database }, { features: [...STORES, plugin] }), {
        code: 'FEATURE_INVALID',
        message,
      });
      assert.equal(await contentOf(database), before);
    });

  it('of a newer version are refused by name', async () => {
    await count(withVisits, ...ids);
    const older = openStore({ database }, { features: [...STORES, visits(first)] });
    await assert.rejects(older, { code: 'STORE_NEWER', message: /svc-api-visits .*"notes"/ });
    const renamed = openStore({ database }, { features: [...STORES, visits({ ...first, name: 'other' }, second)] });
    await assert.rejects(renamed, { code: 'FEATURE_INVALID', message: /svc-api-visits .*"counts"/ });
    const without = openStore({ database }, { features: [...STORES, { feature: 'svc-api-visits' }] });
    await assert.rejects(without, { code: 'STORE_NEWER', message: /svc-api-visits .*"counts"/ });
  });
});

describe("the declaration of a plugin's tables", () => {
  for (const [what, kept, message] of [
    ['a name without its prefix', { tables: { sessions: ['id'] } }, /"sessions".*"plugin_svc_api_visits_"/],
    ['a misspelt property', { table: {} }, /"?table"?/],
    ['tables without migrations', { tables: { plugin_svc_api_visits_counts: ['id'] } }, /migrations/],
    ['a migration without a function', { migrations: [{ name: 'one' }] }, /up/],
  ] as const)
    it(`is refused by name for ${what}`, () => {
      assert.throws(
        () => requireKept([{ feature: 'svc-api-visits', ...kept } as never]),
        (error: Error) => {
          assert.match(error.message, /svc-api-visits is invalid/);
          assert.match(error.message, message);
          return true;
        },
      );
    });

  it('is refused if another plugin has a table of that name', () => {
    const table = { plugin_svc_api_visits_by_day: ['id'] };
    assert.throws(
      () =>
        requireKept([
          { feature: 'svc-api-visits', tables: table, migrations: [first] },
          { feature: 'svc-api-visits-by', tables: { plugin_svc_api_visits_by_day: ['id'] } },
        ] as never),
      { code: 'FEATURE_INVALID', message: /svc-api-visits-by .*belongs to svc-api-visits as well/ },
    );
  });
});
