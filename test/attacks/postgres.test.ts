import assert from 'node:assert/strict';
import { Usage } from '../../src/features/usage/usage.ts';
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { TABLE_NAMES } from '../../src/store/tables.ts';
import { openStore } from '../../src/store/open.ts';
import { readPostgresUrl } from '../../src/store/postgres-address.ts';
import { openPool } from '../../src/store/postgres/postgres-pool.ts';
import { describeOn } from '../support/dialects.ts';
import { changeDirectly, readDirectly } from '../support/direct.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';
import { withNextSchema } from '../support/next-schema.ts';
import { postgresStore } from '../support/postgres.ts';
import { ROOT } from '../support/process.ts';
import { type ServeProcess, startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { Visitor } from '../features/console/support/console.ts';
import { until } from '../support/until.ts';

/** The SQL of docs/postgresql.md, with a test's role and schema. */
function grantsFor(store: string, role: string): string {
  const text = readFileSync(join(ROOT, 'docs/postgresql.md'), 'utf8');
  const [, statements] = /^```sql\n(create role [^]*?)^```/m.exec(text)!;
  return statements!
    .replaceAll('svc_api_server', role)
    .replaceAll('svc_api', new URL(store).searchParams.get('schema')!);
}

describeOn('postgres', "the server's database user", () => {
  const role = `server_${randomBytes(6).toString('hex')}`;
  let owned: string;
  let served: string;
  let test: TestKeys;
  let server: ServeProcess;
  let admin: { secret: string; id: string };
  before(async () => {
    owned = postgresStore();
    test = await openTestKeys({ database: owned });
    test.time.now = Date.now();
    await changeDirectly(owned, grantsFor(owned, role));
    const url = new URL(owned);
    [url.username, url.password] = [role, 'choose another'];
    served = url.href;
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'Admin', roles: ['ADMIN'] }, OPERATOR);
    admin = { secret, id: key.id };
    server = await startServe(served);
  });
  after(async () => {
    await server.stop();
    await test.store.close();
    await changeDirectly(owned, `drop owned by ${role}; drop role ${role}`);
  });

  it('serves queries, counts uses, activates a rotation and logs refused requests', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const rotated = await test.keys.rotate(key.id, { activate: 'on-first-use' }, OPERATOR);
    const me = await query(server.url, rotated.key, '{ me { name } info { version } }');
    assert.deepEqual(me.body.data, { me: { name: 'CI' }, info: null });
    assert.equal((await query(server.url, secret, '{ me { name } }')).status, 200);
    assert.equal(
      (await query(server.url, admin.secret, '{ apiKeys { edges { node { name } } } }')).body.errors,
      undefined,
    );
    await server.stop();
    server = await startServe(served);
    const { rotation } = (await test.keys.findById(key.id, OPERATOR))!;
    assert.ok(rotation!.previousEndsAt !== null, 'the rotation is active');
    assert.equal((await test.keys.useOf([key.id])).get(key.id)?.uses, 2);
    const [hour] = (await test.keys.feature(Usage).byPeriod(key.id)).periods;
    assert.deepEqual([hour?.accepted, hour?.forbidden], [1, 1]);
    const actions = (await test.keys.audit.read({}, OPERATOR)).map(({ action }) => action);
    assert.ok(actions.includes('ROTATE_ACTIVATE') && actions.includes('REFUSE'), actions.join(' '));
    assert.ok(!('broken' in (await test.keys.audit.check()).verification));
  });

  it('refuses sign-ins at the console, and says why', async () => {
    const visitor = new Visitor(server.url);
    const page = await visitor.signIn(admin.secret);
    assert.equal(page.status, 503, page.text);
    assert.match(page.text, /This server cannot write to the key store, so signing in is not possible\./);
  });

  it('bounds the records of the use of keys', async () => {
    const { apiKey: key } = await test.keys.create({ name: 'Old', roles: ['GUEST'] }, OPERATOR);
    const { apiKey: deleted } = await test.keys.create({ name: 'Deleted', roles: ['GUEST'] }, OPERATOR);
    const now = Math.floor(Date.now() / 3_600_000);
    const day = Math.floor(now / 24) - 100;
    await changeDirectly(
      owned,
      ...[key, deleted].flatMap(({ id }, index) => [
        `insert into key_uses values ('${id}', 1, 1, 1)`,
        `insert into key_usage values ('${id}', ${index}, ${day * 24}, ${now}, 1, 0, 0, 0)`,
      ]),
      ...[5, now - 1].map((hour) => `insert into key_usage_hours values (${hour}, 0, 1, 0, 0, 0)`),
      'insert into key_usage_days values (6, 0, 1, 0, 0, 0)',
      `insert into key_usage_days values (${day}, 1, 1, 0, 0, 0)`,
    );
    await test.keys.delete([deleted.id], OPERATOR);
    await server.stop();
    server = await startServe(served);
    await query(server.url, admin.secret, '{ online }');
    const left = async (table: string) =>
      (await readDirectly(owned, `select 1 from ${table} where key_number in (0, 1)`)).length;
    await until(async () => (await readDirectly(owned, 'select 1 from key_usage where number = 1')).length === 0);
    assert.deepEqual([await left('key_usage_hours'), await left('key_usage_days')], [1, 0]);
  });

  it('records the uses that an edge reports', async () => {
    const edge = await test.keys.create({ name: 'Edge', roles: [], permissions: ['EDGE:READ_ANY'] }, OPERATOR);
    const { apiKey: key } = await test.keys.create({ name: 'At an edge', roles: ['GUEST'] }, OPERATOR);
    const usage = { id: key.id, uses: 2, lastUsedAt: Date.now(), previousLastUsedAt: null, permissions: [], hours: [] };
    const report = { id: randomUUID(), usage: [usage], activated: [], refusals: [] };
    const { status } = await fetch(`${server.url}/feed/activity`, {
      method: 'POST',
      body: JSON.stringify(report),
      headers: { Authorization: `Bearer ${edge.key}`, 'Content-Type': 'application/json' },
    });
    assert.equal(status, 204);
    assert.equal((await test.keys.useOf([key.id])).get(key.id)?.uses, 2);
  });

  it('holds keys to their limits', async () => {
    const { key: secret } = await test.keys.create({ name: 'Limited', roles: ['GUEST'], limits: ['2/d'] }, OPERATOR);
    const statuses = [];
    for (let index = 0; index < 3; index += 1) statuses.push((await query(server.url, secret, '{ online }')).status);
    assert.deepEqual(statuses, [200, 200, 429]);
  });

  it('brings no previous secret back whose grace has begun', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'Leaked', roles: ['ADMIN'] }, OPERATOR);
    await test.keys.rotate(key.id, { grace: '1h' }, OPERATOR);
    for (const end of ['99999999999999', 'null'])
      await assert.rejects(
        changeDirectly(served, `update api_keys set previous_ends_at = ${end} where name = 'Leaked'`),
        /a grace that has begun only gets shorter/,
      );
    await changeDirectly(served, "update api_keys set previous_ends_at = 1 where name = 'Leaked'");
    assert.equal((await query(server.url, secret, '{ me { name } }')).status, 401);
  });

  it('makes no key by GraphQL: the reply says that this server cannot', async () => {
    const { body } = await query(
      server.url,
      admin.secret,
      'mutation { createApiKey(input: { name: "New", roles: [ADMIN] }) { key } }',
    );
    assert.deepEqual(
      [body.errors?.[0]?.extensions['code'], body.errors?.[0]?.message],
      [
        'STORE_READONLY',
        'This server cannot write to the key store. Change keys from the command line, or through another server.',
      ],
    );
  });

  for (const statement of [
    `update api_keys set roles = '["ADMIN"]'`,
    `update api_keys set permissions = '["DOCKER:READ_ANY"]'`,
    'update api_keys set expires_at = null',
    'update api_keys set disabled_at = null',
    'update api_keys set created_by = null',
    `update api_keys set digest = 'x'`,
    `update api_keys set previous_digest = 'x'`,
    `update api_keys set public_id = 'x'`,
    'insert into api_keys (id, name) select id, name from api_keys',
    'delete from api_keys',
    'truncate api_keys cascade',
    `update audit_log set action = 'CREATE'`,
    'delete from audit_log',
    'truncate audit_log',
    'delete from audit_head',
    'update svc_api_schema set version = 1',
    'alter table api_keys add column more text',
    'alter table audit_log disable trigger all',
    'drop table audit_log',
    'drop trigger audit_log_only_grows on audit_log',
    'create or replace function forbid_audit_changes() returns trigger language plpgsql as $$ begin return new; end $$',
    'create table more (id text)',
  ]) {
    it(`is refused by the database to ${statement.slice(0, 60)}`, async () => {
      await assert.rejects(readDirectly(served, statement), { code: '42501' });
    });
  }

  it('is asked to let the owner migrate an older store', async () => {
    await withNextSchema(
      async () => {},
      () =>
        assert.rejects(openStore({ database: served }), {
          code: 'STORE_READONLY',
          message: /has schema \d+, and this version of svc-api needs \d+\. Open it once as the owner/,
        }),
    );
  });
});

describeOn('postgres', 'objects that another role planted', () => {
  const mallory = `mallory_${randomBytes(6).toString('hex')}`;
  let store: string;
  before(() => changeDirectly(postgresStore(), `create role ${mallory}`));
  beforeEach(async () => {
    store = postgresStore();
    const { store: opened } = await openTestKeys({ database: store });
    await opened.close();
  });
  after(() => changeDirectly(postgresStore(), `drop owned by ${mallory} cascade; drop role ${mallory}`));

  const schemaOf = (database: string) => new URL(database).searchParams.get('schema')!;
  const isRefused = (database: string, what: string) =>
    assert.rejects(openStore({ database }), {
      code: 'STORE_FOREIGN',
      message: new RegExp(
        `is not safe: its ${what} belongs to the role "${mallory}".* add the parameter owner=${mallory}`,
      ),
    });

  for (const table of ['svc_api_schema', ...TABLE_NAMES])
    it(`are refused where it is the table ${table}`, async () => {
      await changeDirectly(store, `alter table ${table} owner to ${mallory}`);
      await isRefused(store, `table "${table}"`);
    });

  it('are refused before a view is read, which would run its functions', async () => {
    const planted = postgresStore();
    await changeDirectly(
      planted,
      `create schema ${schemaOf(planted)}`,
      'create table trace (at timestamptz)',
      `create function plant() returns integer language sql as 'insert into trace values (now()) returning 7'`,
      'create view svc_api_schema as select plant() as version',
      `alter view svc_api_schema owner to ${mallory}`,
    );
    await isRefused(planted, 'view "svc_api_schema"');
    assert.deepEqual(await readDirectly(planted, 'select * from trace'), []);
  });

  it('are refused where a trigger calls its function', async () => {
    await changeDirectly(store, `alter function announce_changed_keys() owner to ${mallory}`);
    await isRefused(store, 'function "announce_changed_keys"');
  });

  it('are accepted where the address names their owner', async () => {
    await changeDirectly(store, `alter table audit_head owner to ${mallory}`);
    const opened = await openStore({ database: `${store}&owner=${mallory}` });
    await opened.close();
  });

  for (const [who, role, shown] of [
    ['every role', 'public', 'every role'],
    ['another role', mallory, `the role "${mallory}"`],
  ] as const)
    it(`cannot come from a schema where ${who} may create functions`, async () => {
      await changeDirectly(store, `grant create on schema ${schemaOf(store)} to ${role}`);
      await assert.rejects(openStore({ database: store }), {
        code: 'STORE_FOREIGN',
        message: new RegExp(`is not safe: ${shown} can create functions in the schema .* Run "revoke create on schema`),
      });
    });

  it('are not used from the temporary schema of a session that others shared', async () => {
    const { config } = readPostgresUrl(store);
    const db = await openPool({ ...config, max: 1 });
    await sql`create temporary table api_keys (id text)`.execute(db);
    const { rows } = await sql<{ schema: string }>`select relnamespace::regnamespace::text as schema
      from pg_class where oid = 'api_keys'::regclass`.execute(db);
    assert.deepEqual(rows, [{ schema: schemaOf(store) }]);
    await db.destroy();
  });
});
