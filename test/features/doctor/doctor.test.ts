import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { inspectNode } from '../../../src/features/doctor/cli/doctor.ts';
import { differenceText, type SchemaDifference } from '../../../src/keys/repository/schema-difference.ts';
import { newestSchema } from '../../../src/store/migrations.ts';
import { CHECKS, type Finding } from '../../../src/features/doctor/inspection/finding.ts';
import { type TestCli, testCli } from '../../support/cli.ts';
import { damageIndex, damageKey, damageSchema, SCHEMA_DAMAGES } from '../../support/damage.ts';
import { describeOn, describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, contentOf, readDirectly, unlockAuditLog } from '../../support/direct.ts';
import { tempFolder } from '../../support/temp.ts';
import { inspectStore } from '../../../src/features/doctor/inspection/inspect-store.ts';
import { openKeys } from '../../../src/service/open-keys.ts';
import { UNIT_MS } from '../../../src/keys/basics/duration.ts';
import { STORES } from '../../support/features.ts';

/** Failed checks as `CHECK status`. The tests' PostgreSQL does not sync to disk, so that finding is ignored. */
const wrong = (findings: readonly Finding[]) =>
  findings
    .filter(({ check, status }) => !['ok', 'skipped'].includes(status) && check !== 'SETTINGS')
    .map(({ check, status }) => `${check} ${status}`);

/** The SQL of docs/postgresql.md for a server's database user. */
const [, GRANTS = ''] = /^```sql\n(create role [^]*?)^```/m.exec(readFileSync('docs/postgresql.md', 'utf8'))!;

describeOnEach('doctor', (dialect) => {
  let cli: TestCli;
  beforeEach(async () => {
    cli = testCli();
    await cli.given('A');
  });
  const examine = async (env: NodeJS.ProcessEnv = {}, ...args: string[]) => {
    const { code, stdout } = await cli.run(['doctor', '--json', ...args], { env });
    const { failures, warnings, checks } = JSON.parse(stdout) as {
      failures: number;
      warnings: number;
      checks: Finding[];
    };
    assert.equal(code, failures > 0 ? 1 : 0);
    assert.equal(failures + warnings, checks.filter(({ remedy }) => remedy !== null).length);
    for (const { status, remedy, message } of checks) {
      assert.equal(remedy === null, ['ok', 'skipped'].includes(status), message);
      assert.notEqual(message, '');
    }
    return checks;
  };

  it('finds nothing wrong with a store that is in order, makes each check, and changes nothing', async () => {
    const before = [await contentOf(cli.database), dialect === 'sqlite' && readdirSync(dirname(cli.database))];
    const checks = await examine();
    assert.deepEqual(wrong(checks), []);
    const left = new Set<string>([
      'PLUGINS',
      ...(dialect === 'sqlite' ? ['SETTINGS', 'RIGHTS'] : ['ACCESS', 'SPACE', 'INTEGRITY']),
    ]);
    assert.deepEqual(
      [...new Set(checks.map(({ check }) => check))],
      dialect === 'sqlite'
        ? [...CHECKS.filter((check) => !left.has(check)), 'NOTICES']
        : ['NODE', 'ENVIRONMENT', 'CONFIG', 'STORE', 'SCHEMA', 'SETTINGS', 'RIGHTS', 'AUDIT_LOG', 'CLOCK', 'NOTICES'],
    );
    assert.deepEqual(
      [await contentOf(cli.database), dialect === 'sqlite' && readdirSync(dirname(cli.database))],
      before,
    );
    const { stdout } = await cli.run(['doctor']);
    assert.match(stdout, /^ok +NODE .*\n(.*\n)*(No problems found|0 failures, 2 warnings)\.\n$/);
  });

  it('reports a missing store, and creates none', async () => {
    const other = testCli();
    const { code, stdout } = await other.run(['doctor', '--json']);
    assert.deepEqual([code, wrong((JSON.parse(stdout) as { checks: Finding[] }).checks)], [1, ['STORE failure']]);
    assert.equal(await contentOf(other.database), undefined);
  });

  it('finds variables that contradict each other, or are ignored', async () => {
    const environments: [NodeJS.ProcessEnv, string[]][] = [
      [{ SVC_API_SERVER: 'http://127.0.0.1:1' }, ['ENVIRONMENT failure']],
      [{ SVC_API_KEY: 'x' }, ['ENVIRONMENT warning']],
      [{ SVC_API_TLS_CERT: '/cert.pem' }, ['ENVIRONMENT failure']],
      [{ SVC_API_TLS_CERT: '/nowhere.pem', SVC_API_TLS_KEY: '/nowhere.pem' }, ['ENVIRONMENT failure']],
      [{ SVC_API_SOCKET: '/run/x', SVC_API_PORT: '1' }, ['ENVIRONMENT failure']],
      [{ SVC_API_PORT: 'x' }, ['ENVIRONMENT failure']],
      [{ SVC_API_KEEP_ALIVE: '-1' }, ['ENVIRONMENT failure']],
      [{ XDG_DATA_HOME: 'data', XDG_CONFIG_HOME: 'config' }, ['ENVIRONMENT warning', 'ENVIRONMENT warning']],
    ];
    for (const [env, expected] of environments)
      assert.deepEqual(wrong(await examine(env)), expected, JSON.stringify(env));
    const { code, stdout } = await cli.run(['doctor', '--database', cli.database, '--json'], {
      env: { SVC_API_SERVER: 'http://127.0.0.1:1', SVC_API_DATABASE: '' },
    });
    assert.deepEqual([code, wrong((JSON.parse(stdout) as { checks: Finding[] }).checks)], [0, ['ENVIRONMENT warning']]);
  });

  it('finds faults of svc-api.yaml', async () => {
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, 'rooles: {}\n');
    const found = await examine({}, '--config', config);
    assert.deepEqual(wrong(found), ['CONFIG failure']);
    assert.match(found.find(({ check }) => check === 'CONFIG')!.message, /svc-api\.yaml:1:1.*rooles/);
    assert.deepEqual(wrong(await examine({ SVC_API_CONFIG: `${config}.missing` })), ['CONFIG failure']);
  });

  it('finds a certificate that svc-api.yaml names, and no server could use', async () => {
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, 'tls: { cert: cert.pem, key: key.pem }\n');
    const found = await examine({}, '--config', config);
    assert.deepEqual(wrong(found), ['CONFIG failure']);
    assert.match(found.find(({ check }) => check === 'CONFIG')!.message, /cert\.pem does not exist/);
  });

  it('finds an audit log that is broken, or whose key is not usable', async () => {
    assert.deepEqual(wrong(await examine({ SVC_API_AUDIT_KEY: '/nonexistent' })), ['AUDIT_LOG failure']);
    await unlockAuditLog(cli.database);
    await changeDirectly(cli.database, "update audit_log set actor_name = 'nobody'");
    assert.deepEqual(wrong(await examine()), ['SCHEMA failure', 'SCHEMA failure', 'AUDIT_LOG failure']);
  });

  const isSqlite = dialect === 'sqlite';
  const guards = isSqlite
    ? ['audit_log_no_update', 'audit_log_no_delete']
    : ['audit_log.audit_log_only_grows', 'audit_log.audit_log_keeps_entries'];
  const foreign: [title: string, statements: string[], differences: string[]][] = [
    [
      'an index and a column that are none of its own',
      ['create index by_roles on api_keys (roles)', 'alter table key_uses add column note text'],
      isSqlite
        ? ['changed table key_uses', 'extra index by_roles']
        : ['extra column key_uses.note', 'extra index by_roles'],
    ],
    [
      'a table of others that keeps keys from being deleted',
      [`create table theirs (id ${isSqlite ? 'text' : 'uuid'} references api_keys (id))`],
      [isSqlite ? 'extra table theirs' : 'extra constraint theirs.theirs_id_fkey'],
    ],
    ['an index that is missing', ['drop index api_keys_by_creator'], ['missing index api_keys_by_creator']],
    ...(isSqlite
      ? ([
          [
            'triggers that act, views and virtual tables',
            [
              'create trigger gives after insert on audit_log begin update api_keys set roles = \'["ADMIN"]\'; end',
              'create view seen as select * from api_keys',
              'create virtual table found using fts5(text)',
              'create table theirs (id text)',
              'create trigger takes after insert on theirs begin delete from api_keys; end',
            ],
            ['extra trigger gives', 'extra view seen', 'extra virtual table found', 'extra trigger takes'],
          ],
          [
            'a trigger that does something else',
            [
              'drop trigger audit_log_no_update',
              'create trigger audit_log_no_update before update on audit_log when 0 begin select 1; end',
            ],
            ['changed trigger audit_log_no_update'],
          ],
        ] as [string, string[], string[]][])
      : ([
          [
            'triggers, rules, policies, functions and what inherits',
            [
              `create function gives() returns trigger language plpgsql as $$
                begin update api_keys set roles = '["ADMIN"]'; return null; end $$`,
              'create trigger gives after insert on audit_log execute function gives()',
              'create rule hides as on delete to rotated_secrets do instead nothing',
              'alter table sessions enable row level security',
              'create policy hides on sessions using (false)',
              'create table theirs () inherits (audit_start)',
              'alter table audit_log disable trigger audit_log_only_grows',
              `create or replace function forbid_audit_deletion() returns trigger language plpgsql as $$
                begin return old; end $$`,
              'create function no_other_function() returns int language sql as $$ select 1 $$',
              'alter table api_keys alter column managed set default 1, alter column roles drop not null',
            ],
            [
              'changed column api_keys.managed',
              'changed column api_keys.roles',
              'changed function forbid_audit_deletion()',
              'changed table sessions',
              'changed trigger audit_log.audit_log_only_grows',
              'extra policy sessions.hides',
              'extra rule rotated_secrets.hides',
              'extra table theirs',
              'extra trigger audit_log.gives',
            ],
          ],
        ] as [string, string[], string[]][])),
  ];
  /** The schema faults, which `apikey log --verify` also finds. */
  const schemaOf = async () => {
    const { code, stdout } = await cli.run(['apikey', 'log', '--verify', '--json']);
    const { whole, schemaDifferences: found } = JSON.parse(stdout) as {
      whole: boolean;
      schemaDifferences: SchemaDifference[];
    };
    assert.deepEqual([code, whole], found.length > 0 ? [1, false] : [0, true], stdout);
    const findings = (await examine()).filter(({ check, status }) => check === 'SCHEMA' && status === 'failure');
    assert.deepEqual(
      findings.map(({ message }) => message),
      found.map((difference) => {
        const text = differenceText(difference);
        return `${text[0]!.toUpperCase()}${text.slice(1)}, in schema ${newestSchema()}.`;
      }),
    );
    return found.map(({ difference, type, name }) => `${difference} ${type} ${name}`).toSorted();
  };
  for (const [title, statements, differences] of foreign)
    it(`finds ${title}`, async () => {
      assert.deepEqual(await schemaOf(), []);
      await changeDirectly(cli.database, ...statements);
      assert.deepEqual(await schemaOf(), differences.toSorted());
    });

  it('finds that the guards of the audit log are missing, which --verify says in text, too', async () => {
    await unlockAuditLog(cli.database);
    assert.deepEqual(await schemaOf(), guards.map((name) => `missing trigger ${name}`).toSorted());
    const { code, stdout } = await cli.run(['apikey', 'log', '--verify']);
    assert.equal(code, 1);
    assert.match(
      stdout,
      /^The schema of the store differs from the one that svc-api creates: the trigger .* is missing and /m,
    );
  });

  it('finds nothing wrong with tables of others', async () => {
    await changeDirectly(
      cli.database,
      'create table _litestream_seq (id integer primary key, seq integer)',
      'create unique index theirs on _litestream_seq (seq)',
    );
    assert.deepEqual(await schemaOf(), []);
  });

  it('finds keys that are damaged', async () => {
    await damageKey(cli.database, 'A', 'roles = \'["ADMIN"]\'');
    const found = await examine();
    assert.deepEqual(wrong(found), ['AUDIT_LOG failure']);
    assert.match(found.find(({ check }) => check === 'AUDIT_LOG')!.message, /"A" .* is damaged/);
  });

  if (dialect === 'postgres')
    it('names each server setting that endangers changes, as does the start of a server', async () => {
      const [settings] = await readDirectly(
        cli.database,
        `select current_setting('fsync') as fsync, current_setting('full_page_writes') as pages`,
      );
      const { fsync, pages } = settings!;
      const setReadOnly = (value: string) =>
        changeDirectly(
          cli.database,
          'set default_transaction_read_only = off',
          `do $$ begin execute format('alter database %I set default_transaction_read_only = ${value}',
            current_database()); end $$`,
        );
      await setReadOnly('on');
      try {
        const found = (await examine()).filter(({ check }) => check === 'SETTINGS');
        assert.deepEqual(
          found.map(({ status, message }) => [status, message.replace(/:.*/, '')]),
          [
            ...(fsync === 'off' ? ['fsync = off'] : []),
            ...(pages === 'off' ? ['full_page_writes = off'] : []),
            'default_transaction_read_only = on',
          ].map((setting) => ['warning', `The database server has ${setting}`]),
        );
        const keys = await openKeys({ database: cli.database });
        const problems = await keys.settingProblems();
        await keys.close();
        assert.deepEqual(
          problems,
          found.map(({ message, remedy }) => `${message[0]!.toLowerCase()}${message.slice(1)} ${remedy}`),
        );
      } finally {
        await setReadOnly('off');
      }
    });

  it('finds a clock that is behind the audit log, and jumps of the clock', async () => {
    const future = Date.now() + 3_600_000;
    await unlockAuditLog(cli.database);
    await changeDirectly(cli.database, `update audit_log set at = ${future}`);
    assert.deepEqual(
      (await examine()).filter(({ check }) => check === 'CLOCK').map(({ status }) => status),
      ['failure'],
    );
    await cli.given('B');
    const clock = (await examine()).filter(({ check }) => check === 'CLOCK');
    assert.deepEqual(
      clock.map(({ status }) => status),
      ['warning'],
    );
    assert.match(clock[0]!.message, /ran back between the entries 1 \(.*\) and 2/);
  });

  it('does not report changes made by a server meanwhile as clock faults', async () => {
    await unlockAuditLog(cli.database);
    let now = Date.now();
    // How long the audit log of a million keys takes.
    const onVerified = async () => {
      now += 100_000;
      await changeDirectly(cli.database, `update audit_log set at = ${now}`);
    };
    const options = {
      auditKey: undefined,
      clock: () => now,
      features: STORES,
      onVerified,
    };
    const found = await inspectStore(cli.database, {}, options);
    assert.deepEqual(
      found.filter(({ check, status }) => check === 'CLOCK' && status === 'failure'),
      [],
    );
  });

  it('warns of a machine whose clock is not that of the database server', async () => {
    const clock = () => Date.now() + UNIT_MS.h;
    const found = await inspectStore(cli.database, {}, { auditKey: undefined, clock, features: STORES });
    const message = found.find(({ check }) => check === 'CLOCK')!.message;
    if (dialect === 'sqlite') assert.match(message, /later than every time in the store/);
    else assert.match(message, /^The clock of this machine, by which keys expire, says \S+, and that of the database /);
  });

  it('names the key or entry with an invalid time', async () => {
    const absurd = ['9500000000000000', '-9500000000000000', '300000000000000'];
    const messages = async (check: string) =>
      (await examine()).filter((found) => found.check === check).map(({ message }) => message);
    for (const [at, column] of ['created_at', 'expires_at', 'disabled_at'].entries()) {
      const value = absurd[at]!;
      await changeDirectly(cli.database, `update api_keys set ${column} = ${value}`);
      const found = await messages('AUDIT_LOG');
      assert.match(
        found.join('\n'),
        new RegExp(`^The key "A" \\(.*\\) is damaged: its ${column} is ${value}, which is no`),
      );
      for (const args of [['list'], ['show', 'A']]) {
        const { code, stdout } = await cli.run(['apikey', ...args, '--json']);
        assert.equal(code, 0, stdout);
      }
      await changeDirectly(cli.database, `update api_keys set created_at = 1, expires_at = null, disabled_at = null`);
    }
    await unlockAuditLog(cli.database);
    for (const value of absurd) {
      await changeDirectly(cli.database, `update audit_log set at = ${value}`);
      assert.deepEqual(await messages('CLOCK'), [`Entry 1 of the audit log is of the time ${value}, which is none.`]);
      const { code, stdout } = await cli.run(['apikey', 'log', '--json']);
      assert.equal(code, 0, stdout);
    }
    await changeDirectly(cli.database, 'update audit_log set at = -5');
    assert.equal((await messages('CLOCK')).join().includes('unexpectedly'), false);
  });

  if (dialect === 'postgres') return;

  it('reports who else may use the files, and does not change that', async () => {
    chmodSync(cli.database, 0o644);
    assert.deepEqual(wrong(await examine()), ['ACCESS warning']);
    chmodSync(cli.database, 0o666);
    assert.deepEqual(wrong(await examine()), ['ACCESS failure', 'ACCESS warning']);
    assert.equal(statSync(cli.database).mode & 0o777, 0o666);
    chmodSync(cli.database, 0o600);
    chmodSync(`${cli.database}-reserve`, 0o604);
    assert.deepEqual(wrong(await examine()), ['ACCESS warning']);
    chmodSync(dirname(cli.database), 0o777);
    assert.deepEqual(wrong(await examine()), ['ACCESS failure', 'ACCESS warning']);
    chmodSync(dirname(cli.database), 0o700);
  });

  it('takes rights from others with --fix, unless they could have changed the file', async () => {
    const reserve = `${cli.database}-reserve`;
    const modeOf = (path: string) => statSync(path).mode & 0o777;
    chmodSync(reserve, 0o604);
    assert.deepEqual(wrong(await examine({}, '--fix')), []);
    assert.equal(modeOf(reserve), 0o600);
    const { fixed } = JSON.parse((await cli.run(['doctor', '--fix', '--json'])).stdout) as { fixed: string[] };
    assert.equal(fixed.length, 1, 'the second time, only free space is returned');
    chmodSync(cli.database, 0o666);
    assert.deepEqual(wrong(await examine({}, '--fix')), ['ACCESS failure', 'ACCESS warning']);
    assert.equal(modeOf(cli.database), 0o666);
    chmodSync(cli.database, 0o600);
  });

  it('says once why a store cannot be opened with --fix', async () => {
    const key = join(dirname(cli.database), 'audit.key');
    writeFileSync(key, 'k'.repeat(32), { mode: 0o644 });
    assert.deepEqual(wrong(await examine({ SVC_API_AUDIT_KEY: key }, '--fix')), ['AUDIT_LOG failure']);
  });

  it('leaves the rights of files with --fix where others can replace them, or are meant to use them', async () => {
    const reserve = `${cli.database}-reserve`;
    chmodSync(reserve, 0o604);
    await examine({ SVC_API_STORE_MODE: 'shared' }, '--fix');
    assert.equal(statSync(reserve).mode & 0o777, 0o604);
    chmodSync(dirname(cli.database), 0o777);
    await examine({}, '--fix');
    assert.equal(statSync(reserve).mode & 0o777, 0o604);
    chmodSync(dirname(cli.database), 0o700);
  });

  it('does not open a store with --fix that is damaged or of another schema', async () => {
    await changeDirectly(cli.database, 'pragma user_version = 9999');
    const before = readFileSync(cli.database);
    const { stdout, code } = await cli.run(['doctor', '--fix', '--json']);
    const { fixed, freedBytes } = JSON.parse(stdout) as { fixed: string[]; freedBytes: number | null };
    assert.deepEqual([code, fixed, freedBytes], [1, [], null]);
    assert.ok(readFileSync(cli.database).equals(before));
  });

  it('finds a schema that is newer', async () => {
    await changeDirectly(cli.database, 'pragma user_version = 9999');
    assert.deepEqual(wrong(await examine()), ['SCHEMA failure']);
  });

  it('finds a file that is no store, a folder, and a lock', async () => {
    const bytes = readFileSync(cli.database);
    writeFileSync(cli.database, 'x'.repeat(9000));
    assert.deepEqual(wrong(await examine()), ['STORE failure']);
    writeFileSync(cli.database, bytes);
    await changeDirectly(cli.database, 'pragma application_id = 7');
    assert.deepEqual(wrong(await examine()), ['STORE failure']);
    writeFileSync(cli.database, bytes);
    const lock = new Database(cli.database);
    lock.pragma('locking_mode = exclusive');
    lock.exec('begin exclusive');
    assert.deepEqual(wrong(await examine()), ['STORE failure']);
    lock.exec('rollback');
    lock.close();
    rmSync(cli.database);
    mkdirSync(cli.database);
    assert.deepEqual(wrong(await examine()), ['STORE failure'], 'nobody is told to change the mode of a folder');
  });

  it('finds damage of the file', async () => {
    damageIndex(cli.database);
    assert.ok(wrong(await examine()).includes('INTEGRITY failure'));
  });

  for (const damage of SCHEMA_DAMAGES)
    it(`finds that ${damage.word} in ${damage.name} is damaged`, async () => {
      damageSchema(cli.database, damage);
      assert.ok(wrong(await examine()).includes('INTEGRITY failure'));
    });

  it('finds the -wal of another file beside it', async () => {
    const other = testCli();
    await other.given('B');
    const reader = new Database(other.database);
    reader.exec('begin');
    reader.prepare('select * from api_keys').all();
    await other.given('C');
    copyFileSync(`${other.database}-wal`, `${cli.database}-wal`);
    reader.close();
    chmodSync(`${cli.database}-wal`, 0o600);
    const found = await examine();
    assert.deepEqual(wrong(found), ['STORE failure']);
    assert.match(
      found.find(({ check }) => check === 'STORE')!.message,
      /-wal belongs to the file that was there before/,
    );
  });

  it('leaves the -journal of a killed program alone, and does not roll it back', async () => {
    const folder = tempFolder();
    const path = join(folder, 'keys.sqlite');
    const writer = new Database(cli.database);
    writer.pragma('journal_mode = delete');
    writer.pragma('cache_size = 1');
    writer.exec('begin immediate; update api_keys set fields = hex(randomblob(400))');
    for (const suffix of ['', '-journal']) copyFileSync(cli.database + suffix, path + suffix);
    writer.exec('rollback');
    writer.close();
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o600);
    const contents = () => [path, `${path}-journal`].map((file) => readFileSync(file, 'base64'));
    const before = contents();
    await examine({ SVC_API_DATABASE: path });
    assert.deepEqual(contents(), before);
    assert.deepEqual(readdirSync(folder), ['keys.sqlite', 'keys.sqlite-journal']);
  });

  it('leaves the -wal of a killed program alone', async () => {
    const folder = tempFolder();
    const path = join(folder, 'keys.sqlite');
    const writer = new Database(cli.database);
    writer.pragma('wal_autocheckpoint = 0');
    writer.exec('create table passing (id); drop table passing');
    for (const suffix of ['', '-wal']) copyFileSync(cli.database + suffix, path + suffix);
    writer.close();
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o600);
    const before = [path, `${path}-wal`].map((file) => readFileSync(file, 'base64'));
    assert.deepEqual(wrong(await examine({ SVC_API_DATABASE: path })), []);
    assert.deepEqual(
      [path, `${path}-wal`].map((file) => readFileSync(file, 'base64')),
      before,
    );
  });
});

describeOn('postgres', 'doctor, as a user of the database', () => {
  it('finds rights that are missing', async () => {
    const cli = testCli();
    await cli.given('A');
    const url = new URL(cli.database);
    const schema = url.searchParams.get('schema')!;
    const role = `doctor_${randomBytes(6).toString('hex')}`;
    await changeDirectly(
      cli.database,
      `create role ${role} login password 'x'`,
      `grant usage on schema ${schema} to ${role}`,
      `grant select on all tables in schema ${schema} to ${role}`,
    );
    try {
      [url.username, url.password] = [role, 'x'];
      const { code, stdout } = await cli.run(['doctor', '--json', '--database', url.href]);
      const { checks } = JSON.parse(stdout) as { checks: Finding[] };
      const rights = checks.filter(({ check }) => check === 'RIGHTS');
      assert.equal(code, 1);
      // Revokes each `grant … on … to …` alone; exactly that one must be reported missing.
      const granted = [...GRANTS.matchAll(/^grant ((?:insert|update|delete).*) on (.+) to \w+;$/gm)].flatMap(
        ([, privileges, tables]) =>
          [...tables!.matchAll(/\.(\w+)/g)].flatMap(([, table]) =>
            [...privileges!.matchAll(/insert|update|delete/g)].map(([privilege]) => `${privilege} on ${table}`),
          ),
      );
      assert.deepEqual(
        rights.map(({ remedy }) => /: grant (\w+ on \w+) to /.exec(remedy!)?.[1] ?? '').toSorted(),
        granted.toSorted(),
      );
      assert.ok(rights.every(({ remedy }) => remedy?.includes(` to ${role}.`)));
      assert.deepEqual(
        wrong(checks).filter((text) => text !== 'RIGHTS failure'),
        [],
      );
    } finally {
      await changeDirectly(cli.database, `drop owned by ${role}`, `drop role ${role}`);
    }
  });
});

describeOn('postgres', 'doctor, as the user of docs/postgresql.md', () => {
  it('accepts the rights of a server', async () => {
    const cli = testCli();
    await cli.given('A');
    const url = new URL(cli.database);
    const role = `doctor_${randomBytes(6).toString('hex')}`;
    const schema = url.searchParams.get('schema')!;
    await changeDirectly(cli.database, GRANTS.replaceAll('svc_api_server', role).replaceAll('svc_api', schema));
    try {
      [url.username, url.password] = [role, 'choose another'];
      const { code, stdout } = await cli.run(['doctor', '--json', '--database', url.href]);
      const { checks } = JSON.parse(stdout) as { checks: Finding[] };
      assert.deepEqual([code, wrong(checks)], [0, []]);
      assert.match(checks.find(({ check }) => check === 'RIGHTS')!.message, /may serve\.$/);
      assert.match(checks.find(({ check }) => check === 'SCHEMA')!.message, /was not compared/);
    } finally {
      await changeDirectly(cli.database, `drop owned by ${role}`, `drop role ${role}`);
    }
  });
});

describe('doctor, on a version of Node that is not supported', () => {
  it('reports that', () => {
    const own = Object.getOwnPropertyDescriptor(process, 'versions')!;
    Object.defineProperty(process, 'versions', { configurable: true, value: { ...process.versions, node: '20.1.0' } });
    try {
      const { status, message } = inspectNode();
      assert.deepEqual([status, message.includes('20.1.0')], ['failure', true]);
    } finally {
      Object.defineProperty(process, 'versions', own);
    }
  });
});
