import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Kysely, type KyselyPlugin, sql } from 'kysely';
import { withKeys } from '../../../src/cli/with-keys.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { writeUses } from '../../../src/keys/authentication/activity.ts';
import { USED_LIMITS } from '../../../src/keys/basics/limit.ts';
import type { Connection } from '../../../src/store/connection.ts';
import { copyStore } from '../../../src/features/backup/copy-store.ts';
import { openConnection } from '../../../src/store/open.ts';
import { isPostgresUrl } from '../../../src/store/postgres-address.ts';
import type { Tables } from '../../../src/store/tables.ts';
import { testCli } from '../../support/cli.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, readDirectly } from '../../support/direct.ts';
import { authenticate, countKeys, createPrincipal, openTestKeys, storedKey } from '../../support/keys.ts';
import { postgresStore } from '../../support/postgres.ts';
import { keyNamed } from '../../support/stored.ts';
import { runCliHere } from '../../support/cli-here.ts';
import { makeStore, tempFolder, tempStore } from '../../support/temp.ts';
import { STORES } from '../../support/features.ts';
import { alteringTrigger } from '../backup/support/altering-trigger.ts';

/** A store with everything: created child keys, a rotation, usage, a pruned audit log. */
async function fullStore(database: string): Promise<{ secrets: string[] }> {
  await makeStore(database);
  const { keys, store, time, options } = await openTestKeys({ database });
  const parent = await createPrincipal(keys, { name: 'Parent', roles: ['ADMIN'], description: 'Käse 日本 😀' });
  const held = { limits: ['100/m', '5/h'], allowFrom: ['10.0.0.0/8'] };
  const child = await createPrincipal(
    keys,
    { name: 'Child', roles: ['GUEST'], expiresIn: '10d', ...held },
    parent.principal,
  );
  for (let index = 0; index < 3; index += 1) await keys.limiter.enter(child.principal.restrictions!);
  const rotated = await keys.rotate(child.principal.apiKey.id, { grace: '1h' }, OPERATOR);
  // A key listed before its creator, which is possible for imported keys.
  await store.repository.write((writer) =>
    writer.insert([
      storedKey('00000000-0000-4000-8000-000000000000', {
        name: 'First',
        createdBy: parent.principal.apiKey.id,
        createdAt: 1,
      }),
    ]),
  );
  for (const secret of [parent.secret, child.secret, rotated.key]) await authenticate(keys, secret);
  await keys.finishActivity();
  const start = Math.floor(time.now / 3_600_000) * 3_600_000;
  const hours = [0, 1, 200 * 24].map((age) => ({
    start: start - age * 3_600_000,
    accepted: 5,
    forbidden: 3,
    limited: 2,
    refused: 1,
  }));
  await store.repository.write(async (writer) => {
    const { id } = parent.principal.apiKey;
    const totals = { uses: 0, lastUsedAt: null, previousLastUsedAt: null, permissions: [] };
    await writeUses(writer, [{ id, ...totals, hours }], options.listeners);
    for (const { condensing } of options.listeners) await condensing?.(writer, time.now, 10);
  });
  time.now += 2000;
  await keys.audit.prune('1s');
  await keys.update(child.principal.apiKey.id, { description: 'After the pruning' }, OPERATOR);
  await store.close();
  return { secrets: [parent.secret, child.secret, rotated.key] };
}

/** The rows of a feature's table as texts, because databases represent numbers differently. */
async function rowsOf(database: string, table: string): Promise<string[]> {
  const rows = await readDirectly(database, `select * from ${table}`);
  return rows
    .map((row) =>
      Object.values(row as object)
        .map(String)
        .join(),
    )
    .toSorted();
}

/** Everything that a store reports about itself. */
async function contentOf(database: string): Promise<object> {
  const { keys, store } = await openTestKeys({ database });
  const page = await keys.list({ first: 500 }, OPERATOR);
  const ids = page.keys.map(({ id }) => id);
  const content = {
    keys: page.keys,
    usage: await keys.useOf(ids),
    ofFeatures: await Promise.all(
      STORES.flatMap(({ tables = {} }) => Object.keys(tables)).map((table) => rowsOf(database, table)),
    ),
    limits: await store.repository.port(USED_LIMITS).find(ids),
    log: await keys.audit.read({ first: 500 }, OPERATOR),
    whole: (await keys.audit.check()).verification,
  };
  await store.close();
  return content;
}

/** The server's timeout for idle transactions, in milliseconds. */
const IMPATIENCE_MS = 500;

/** A store that delays the first query of a kind until the other server's timeout has passed. */
function slowAndImpatient(connection: Connection, kind: 'SelectQueryNode' | 'InsertQueryNode'): Connection {
  let slow: object | undefined;
  let begun = 0;
  const plugin: KyselyPlugin = {
    transformQuery: ({ node, queryId }) => {
      if (node.kind === kind) slow ??= queryId;
      return node;
    },
    transformResult: async ({ result, queryId }) => delay(queryId === slow ? 1.2 * IMPATIENCE_MS : 0, result),
  };
  const losePatience = async (session: Kysely<Tables>) => {
    if (connection.dialect === 'postgres')
      await sql`set idle_in_transaction_session_timeout = ${sql.lit(IMPATIENCE_MS)}`.execute(session);
  };
  return {
    ...connection,
    dialect: connection.dialect,
    location: connection.location,
    close: () => connection.close(),
    run: (work) =>
      connection.run((db) =>
        db.connection().execute(async (session) => {
          await losePatience(session);
          return work(session.withPlugin(plugin));
        }),
      ),
    write: (work) =>
      connection.write(async (transaction, changed) => {
        begun += 1;
        assert.equal(begun, 1, 'the transaction was ended, and is made again');
        await losePatience(transaction);
        return work(transaction.withPlugin(plugin), changed);
      }),
  };
}

/** The indexes of a store's tables. */
const indexesOf = async (store: string) =>
  new Set(
    (
      await readDirectly(
        store,
        isPostgresUrl(store)
          ? `select replace(indexdef, current_schema(), '') as index, contype as constraint,
               case when tablename = 'other' then (schemaname || '.' || indexname)::regclass::oid end as unchanged
             from pg_indexes left join pg_constraint on conname = indexname and connamespace::regnamespace::text = schemaname
             where schemaname = current_schema()`
          : `select name || ' ' || coalesce(sql, '') as "index" from sqlite_schema where type = 'index'`,
      )
    ).map((row) => JSON.stringify(row)),
  );

const copy = (from: string, to: string, ...args: string[]) =>
  runCliHere(['apikey', 'export', '--database', from, '--to', to, ...args]);

describeOnEach('copying a store', () => {
  for (const [what, target] of [
    ['a file', () => join(tempFolder(), 'copy.sqlite')],
    ['PostgreSQL', postgresStore],
  ] as const) {
    it(`into ${what} copies everything: the secrets are accepted there, and the audit log verifies`, async () => {
      const [from, to] = [tempStore(), target()];
      const { secrets } = await fullStore(from);
      const before = await contentOf(from);
      const { stdout, code, stderr } = await copy(from, to);
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /^Copied 3 keys and \d+ entries of the audit log from \S+ to \S+, and compared them\.\n$/);
      assert.deepEqual(await contentOf(to), before);
      assert.deepEqual(await contentOf(from), before, 'the original is as it was');
      const { keys, store } = await openTestKeys({ asServer: true, database: to });
      for (const secret of secrets) assert.ok('principal' in (await authenticate(keys, secret)));
      await keys.delete([(await keys.findByName('Parent', OPERATOR))!.id], OPERATOR);
      assert.equal(await countKeys(store.repository), 0, 'those that it created leave with it');
      await store.close();
    });
  }

  it('knows secrets that keys had once', async () => {
    const [from, to] = [tempStore(), tempStore()];
    const { keys, store } = await openTestKeys({ database: from });
    const { key, apiKey } = await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    await keys.rotate(apiKey.id, {}, OPERATOR);
    await keys.finishRotation(apiKey.id, OPERATOR);
    await store.close();
    assert.equal((await copy(from, to)).code, 0);
    const copied = await openTestKeys({ database: to });
    const found = await copied.keys.identify(key, OPERATOR);
    assert.ok(!('unknown' in found));
    assert.deepEqual([found.status, found.publicId], ['ROTATED', key.slice(4, 16)]);
    await copied.store.close();
  });

  it('keeps the indexes of a new store that lookups need, and those of other tables', async () => {
    const [from, to] = [tempStore(), tempStore()];
    await fullStore(from);
    await makeStore(to);
    const odd = 'create index "of ""an operator""" on api_keys (fields)';
    await changeDirectly(to, 'create table other (a integer unique)', 'create index other_by_a on other (a)', odd);
    const before = await indexesOf(to);
    const [source, target] = [
      await openConnection({ database: from, features: STORES }),
      await openConnection({ database: to, features: STORES }),
    ];
    await copyStore(source, target);
    await source.close();
    await target.close();
    assert.ok(before.size > 10);
    assert.deepEqual(await indexesOf(to), before);
    const { keys, store } = await openTestKeys({ database: to });
    for (const [search, found] of [
      ['arent', ['Parent']],
      ['käse', ['Parent']],
      ['after the', ['Child']],
      ['nothing', []],
    ] as const) {
      const page = await keys.list({ first: 10, search }, OPERATOR);
      assert.deepEqual(
        page.keys.map(({ name }) => name),
        found,
      );
    }
    await store.close();
  });

  it('may take long: neither server ends its transaction while it waits for the other store', async () => {
    const [from, to] = [tempStore(), postgresStore()];
    await fullStore(from);
    const [source, target] = [
      slowAndImpatient(await openConnection({ database: from, features: STORES }), 'SelectQueryNode'),
      slowAndImpatient(await openConnection({ database: to, features: STORES }), 'InsertQueryNode'),
    ];
    assert.equal((await copyStore(source, target)).keys, 3);
    await source.close();
    await target.close();
  });

  for (const [table, column] of [
    ['api_keys', 'fields'],
    ['key_uses', 'uses'],
    ['used_grants', 'last_used_at'],
  ] as const) {
    it(`is refused where ${table} comes out otherwise there, and then nothing is copied`, async () => {
      const [from, to] = [tempStore(), tempStore()];
      await fullStore(from);
      await makeStore(to);
      await changeDirectly(to, ...alteringTrigger(to, table, column));
      const [source, target] = [
        await openConnection({ database: from, features: STORES }),
        await openConnection({ database: to, features: STORES }),
      ];
      await assert.rejects(copyStore(source, target), {
        code: 'STORE_FAILED',
        message: `The copy of ${table} in ${target.location} differs from the original. Nothing was copied. Try again.`,
      });
      await source.close();
      await target.close();
      assert.deepEqual(await readDirectly(to, 'select id from api_keys'), []);
    });
  }

  it('is refused where a row cannot be inserted, and then nothing is copied', async () => {
    const [from, to] = [tempStore(), tempStore()];
    await fullStore(from);
    await makeStore(to);
    const before = await indexesOf(to);
    await changeDirectly(
      to,
      ...(isPostgresUrl(to)
        ? [
            `create function refuse_row() returns trigger language plpgsql as 'begin raise exception ''no''; end'`,
            'create trigger refuse_row before insert on used_grants for each row execute function refuse_row()',
          ]
        : [`create trigger refuse_row before insert on used_grants begin select raise(abort, 'no'); end`]),
    );
    const [source, target] = [
      await openConnection({ database: from, features: STORES }),
      await openConnection({ database: to, features: STORES }),
    ];
    await assert.rejects(copyStore(source, target), { code: 'STORE_FAILED' });
    await source.close();
    await target.close();
    assert.deepEqual(await readDirectly(to, 'select id from api_keys'), []);
    assert.deepEqual(await indexesOf(to), before);
  });

  it('is refused into PostgreSQL if another program gave a key an invalid id, and says so', async () => {
    const [from, to] = [join(tempFolder(), 'keys.sqlite'), postgresStore()];
    await fullStore(from);
    await changeDirectly(from, "update api_keys set id = 'by hand' where name = 'First'");
    const { stderr, code } = await copy(from, to);
    assert.match(stderr, /cannot hold a value that another program has written, such as an id that is not a UUID/);
    assert.equal(code, 1);
    assert.deepEqual(await readDirectly(to, 'select id from api_keys'), []);
  });

  it('lets others change the original meanwhile, does not copy those changes, and says so', async () => {
    const [from, to] = [tempStore(), tempStore()];
    await fullStore(from);
    const before = await contentOf(from);
    const [source, target] = [
      await openConnection({ database: from, features: STORES }),
      await openConnection({ database: to, features: STORES }),
    ];
    const changeFirst: Connection['write'] = (work) =>
      target.write(async (...parameters) => {
        await withKeys({ database: from }, (keys) => keys.create({ name: 'Meanwhile', roles: ['GUEST'] }, OPERATOR));
        return work(...parameters);
      });
    const copied = await copyStore(source, {
      ...target,
      dialect: target.dialect,
      location: target.location,
      write: changeFirst,
    });
    assert.deepEqual([copied.keys, copied.changedMeanwhile], [3, true]);
    await source.close();
    await target.close();
    assert.deepEqual(await contentOf(to), before);
    assert.ok(await keyNamed(from, 'Meanwhile'));
  });

  it('reports in JSON what was copied', async () => {
    const [from, to] = [tempStore(), join(tempFolder(), 'copy.sqlite')];
    await fullStore(from);
    const { stdout } = await copy(from, to, '--json');
    const { keys, auditEntries, changedMeanwhile, to: place } = JSON.parse(stdout) as Record<string, unknown>;
    assert.deepEqual([keys, Number(auditEntries) > 0, changedMeanwhile, place], [3, true, false, to]);
  });

  it('is refused into a store with content, into itself, and from a missing one', async () => {
    const from = tempStore();
    await fullStore(from);
    const other = testCli(tempStore());
    await other.given('There');
    for (const [source, target, exit, expected] of [
      [from, other.database, 1, 'STORE_NOT_EMPTY'],
      [from, from, 2, 'USAGE'],
      [join(tempFolder(), 'none.sqlite'), tempStore(), 1, 'STORE_UNAVAILABLE'],
    ] as const) {
      const { stdout, code } = await copy(source, target, '--json');
      assert.deepEqual([(JSON.parse(stdout) as { code: string }).code, code], [expected, exit]);
    }
    const missing = await runCliHere(['apikey', 'export', '--database', from, '--to', '', '--json']);
    assert.equal((JSON.parse(missing.stdout) as { code: string }).code, 'USAGE');
  });
});
