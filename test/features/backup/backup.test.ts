import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import type { SchemaDifference } from '../../../src/keys/repository/schema-difference.ts';
import { APPLICATION_ID } from '../../../src/store/sqlite/sqlite-schema.ts';
import { type TestCli, testCli } from '../../support/cli.ts';
import { damageIndex, damageSchema, SCHEMA_DAMAGES } from '../../support/damage.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, contentOf, readDirectly, unlockAuditLog } from '../../support/direct.ts';
import { isAccepted, namesIn } from '../../support/stored.ts';
import { tempFolder } from '../../support/temp.ts';

describeOnEach('backup', (dialect) => {
  let cli: TestCli;
  let folder: string;
  let path: string;
  beforeEach(() => {
    cli = testCli();
    folder = tempFolder();
    path = join(folder, 'backup.sqlite');
  });
  const codeOf = async (...args: string[]) => {
    const { code, stdout } = await cli.run([...args, '--json']);
    return [code, (JSON.parse(stdout) as { code: string }).code];
  };

  it('is a whole store in one file of mode 0600, and changes nothing', async () => {
    const { key } = await cli.given('A');
    const before = await contentOf(cli.database);
    const { code, stdout } = await cli.run(['backup', path, '--json']);
    const { bytes, from: _from, ...made } = JSON.parse(stdout) as Record<string, unknown>;
    const head = /^1:[0-9a-f]{64}$/;
    assert.equal(code, 0);
    assert.match(String(made['head']), head);
    assert.deepEqual(
      { ...made, head: '' },
      { file: path, keys: 1, auditEntries: 1, schema: made['schema'], head: '', log: 'whole', problem: null },
    );
    assert.equal(bytes, statSync(path).size);
    assert.deepEqual(readdirSync(folder), ['backup.sqlite']);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(await contentOf(cli.database), before);
    assert.equal(readFileSync(path).includes(key), false, 'no secret is in it');
    const { code: headCode } = await cli.run(['apikey', 'log', '--verify', '--head', String(made['head'])]);
    assert.equal(headCode, 0);
    assert.equal(await isAccepted(path, key), true);
  });

  it('replaces a file only with --overwrite', async () => {
    await cli.given('A');
    writeFileSync(path, 'precious');
    assert.deepEqual(await codeOf('backup', path), [1, 'BACKUP_EXISTS']);
    assert.equal(readFileSync(path, 'utf8'), 'precious');
    const { code } = await cli.run(['backup', path, '--overwrite']);
    assert.deepEqual([code, statSync(path).mode & 0o777], [0, 0o600]);
  });

  it('is not written over anything but a file, nor where it cannot be', async () => {
    await cli.given('A');
    const target = join(folder, 'target');
    writeFileSync(target, 'precious');
    symlinkSync(target, join(folder, 'link'));
    symlinkSync(join(folder, 'nowhere'), join(folder, 'dangling'));
    mkdirSync(join(folder, 'folder'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    for (const name of ['link', 'dangling', 'folder', 'pipe', 'missing/file', 'target/file'])
      assert.deepEqual(await codeOf('backup', join(folder, name), '--overwrite'), [1, 'BACKUP_UNAVAILABLE'], name);
    assert.equal(readFileSync(target, 'utf8'), 'precious');
    assert.equal(existsSync(join(folder, 'nowhere')), false);
    assert.deepEqual(readdirSync(folder).toSorted(), ['dangling', 'folder', 'link', 'pipe', 'target']);
  });

  it('needs a path, and a store', async () => {
    assert.deepEqual(await codeOf('backup'), [2, 'USAGE']);
    assert.deepEqual(await codeOf('backup', path), [1, 'STORE_UNAVAILABLE']);
    await cli.given('A');
    assert.deepEqual(await codeOf('backup', path, '--server', 'http://127.0.0.1:1'), [2, 'STORE_REQUIRED']);
    assert.deepEqual(readdirSync(folder), []);
  });

  it('removes what an earlier one left that was killed, and nothing that is being written', async () => {
    await cli.given('A');
    const [old, fresh, other] = ['0a1b2c3d', '4e5f6071', 'notours'].map((name) => `${path}.partial-${name}`);
    for (const file of [old!, `${old}-wal`, fresh!, other!]) writeFileSync(file, '');
    const hours = Date.now() / 1000 - 7200;
    for (const file of [old!, `${old}-wal`, other!]) utimesSync(file, hours, hours);
    assert.equal((await cli.run(['backup', path])).code, 0);
    assert.deepEqual(readdirSync(folder).toSorted(), [
      'backup.sqlite',
      'backup.sqlite.partial-4e5f6071',
      'backup.sqlite.partial-notours',
    ]);
  });

  it('is kept, with a warning and exit code 1, where the audit log is broken', async () => {
    await cli.given('A');
    await unlockAuditLog(cli.database);
    await changeDirectly(cli.database, "update audit_log set actor_name = 'nobody'");
    const { code, stdout } = await cli.run(['backup', path, '--json']);
    const { log, problem } = JSON.parse(stdout) as { log: string; problem: string };
    assert.deepEqual([code, log], [1, 'broken']);
    assert.match(problem, /entry 1 was changed after it was written/);
    assert.ok(existsSync(path));
    assert.match((await cli.run(['backup', path, '--overwrite'])).stderr, /Warning: The audit log is broken/);
    assert.deepEqual(await codeOf('restore', path, '--yes'), [1, 'BACKUP_INVALID']);
  });

  it('of a log with a key is checked with that key, which restoring needs', async () => {
    const auditKey = join(folder, 'audit.key');
    writeFileSync(auditKey, 'ab'.repeat(32), { mode: 0o600 });
    const env = { SVC_API_AUDIT_KEY: auditKey };
    assert.equal((await cli.run(['apikey', 'create', 'A', '--roles', 'GUEST'], { env })).code, 0);
    const logOf = async (file: string, surroundings = {}) => {
      const { code, stdout } = await cli.run(['backup', file, '--json'], surroundings);
      return [code, (JSON.parse(stdout) as { log: string }).log];
    };
    assert.deepEqual(await logOf(path, { env }), [0, 'whole']);
    assert.deepEqual(await logOf(`${path}-2`), [0, 'unverifiable']);
    assert.deepEqual(await codeOf('restore', path, '--yes'), [1, 'STORE_AUDIT_KEY']);
    assert.equal((await cli.run(['restore', path, '--yes'], { env })).code, 0);
    assert.equal((await cli.run(['apikey', 'log', '--verify'], { env })).code, 0);
  });

  it('goes into a store that does not exist, without a comparison', async () => {
    const { key } = await cli.given('A');
    await cli.run(['backup', path]);
    await changeDirectly(path, "insert into consent_requests values ('a', 'b', null, 'PENDING', 1, 2, '{}', '')");
    const other = testCli();
    const args = ['restore', path, '--yes', '--json', '--database', other.database];
    assert.deepEqual(await codeOf(...args.slice(0, -1), other.database), [1, 'RESTORE_BLIND']);
    const { code, stdout } = await other.run([...args, '--force']);
    assert.equal(code, 0, stdout);
    assert.equal(await isAccepted(other.database, key), true);
    assert.equal((await other.run(['apikey', 'log', '--verify'])).code, 0);
    const open = await readDirectly(other.database, 'select id from consent_requests');
    assert.deepEqual(open, [], 'what was under way has ended');
    if (dialect === 'sqlite') return;
    for (const more of [['--dry-run'], []]) {
      const again = await other.run([...args, '--force', ...more]);
      const { code: refused, error } = JSON.parse(again.stdout) as { code: string; error: string };
      assert.deepEqual([refused, error.endsWith(' is not empty. Restore into a new one.')], ['STORE_NOT_EMPTY', true]);
    }
    assert.equal(stdout.includes('password'), false);
  });

  if (dialect === 'sqlite') {
    it('is not written beside the -wal of another file, which --overwrite removes', async () => {
      await cli.given('A');
      leaveWal(await backedUp(), path);
      const before = readFileSync(`${path}-wal`);
      assert.deepEqual(await codeOf('backup', path), [1, 'BACKUP_EXISTS']);
      assert.deepEqual(readFileSync(`${path}-wal`), before);
      for (let time = 0; time < 2; time += 1) {
        assert.equal((await cli.run(['backup', path, '--overwrite'])).code, 0);
        assert.deepEqual(readdirSync(folder), ['backup.sqlite']);
        assert.equal((await cli.run(['restore', path, '--dry-run'])).code, 0);
        leaveWal(path, path);
      }
    });

    it('is not restored with the -wal of another store', async () => {
      const other = testCli();
      await cli.given('A');
      await other.given('B');
      assert.equal((await cli.run(['backup', path])).code, 0);
      const reader = new Database(other.database);
      reader.exec('begin');
      reader.prepare('select * from api_keys').all();
      await other.given('C');
      copyFileSync(`${other.database}-wal`, `${path}-wal`);
      chmodSync(`${path}-wal`, 0o600);
      reader.close();
      const { code, stdout } = await cli.run(['restore', path, '--dry-run', '--json']);
      const { code: error, error: text } = JSON.parse(stdout) as { code: string; error: string };
      assert.deepEqual([code, error], [1, 'BACKUP_INVALID']);
      assert.match(text, /-wal belongs to another file/);
    });

    it('of a store that is damaged says that it is the store', async () => {
      await cli.given('A');
      damageIndex(cli.database);
      const { stdout } = await cli.run(['backup', path, '--json']);
      const { code, error } = JSON.parse(stdout) as { code: string; error: string };
      assert.deepEqual([code, error.includes(cli.database)], ['STORE_CORRUPT', true], error);
      assert.deepEqual(readdirSync(folder), []);
    });

    for (const damage of SCHEMA_DAMAGES)
      it(`of a store with ${damage.word} in ${damage.name} damaged says that it is the store`, async () => {
        await cli.given('A');
        damageSchema(cli.database, damage);
        const { stdout } = await cli.run(['backup', path, '--json']);
        const { code, error } = JSON.parse(stdout) as { code: string; error: string };
        assert.deepEqual([code, error.includes(cli.database)], ['STORE_CORRUPT', true], error);
        assert.deepEqual(readdirSync(folder), []);
      });

    /** A backup in another folder. */
    async function backedUp(): Promise<string> {
      const file = join(tempFolder(), 'other.sqlite');
      await cli.run(['backup', file]);
      return file;
    }

    /** Copies a file with its -wal to a path, as a killed program leaves it. */
    function leaveWal(file: string, at: string): void {
      const copy = join(tempFolder(), 'copy.sqlite');
      copyFileSync(file, copy);
      const db = new Database(copy);
      db.pragma('journal_mode = wal');
      db.pragma('wal_autocheckpoint = 0');
      db.exec(`update api_keys set fields = '{"1":"not so"}'`);
      copyFileSync(`${copy}-wal`, `${at}-wal`);
      chmodSync(`${at}-wal`, 0o600);
      db.close();
    }

    it('is neither the store itself nor a file beside it', async () => {
      await cli.given('A');
      const link = join(folder, 'link');
      symlinkSync(dirname(cli.database), link);
      for (const suffix of ['', '-wal', '-shm', '-journal', '-reserve'])
        for (const place of [cli.database, join(link, basename(cli.database))])
          assert.deepEqual(await codeOf('backup', place + suffix, '--overwrite'), [2, 'USAGE'], place + suffix);
      assert.equal(
        readdirSync(dirname(cli.database)).some((name) => name.includes('partial')),
        false,
      );
    });
  }
});

describe('restore refuses a file', () => {
  let cli: TestCli;
  let folder: string;
  beforeEach(async () => {
    cli = testCli();
    folder = tempFolder();
    await cli.given('A');
    await cli.run(['backup', join(folder, 'good')]);
  });
  const refused = async (name: string, code: string, ...args: string[]) => {
    const before = await contentOf(cli.database);
    const result = await cli.run(['restore', join(folder, name), '--yes', '--json', ...args]);
    assert.deepEqual([(JSON.parse(result.stdout) as { code: string }).code, result.code], [code, 1], result.stdout);
    assert.equal(await contentOf(cli.database), before);
    assert.deepEqual(
      readdirSync(dirname(cli.database)).filter((entry) => /restore|replaced/.test(entry)),
      [],
    );
  };
  const good = () => readFileSync(join(folder, 'good'));
  const write = (name: string, bytes: string | Uint8Array) => writeFileSync(join(folder, name), bytes, { mode: 0o600 });

  const files: [title: string, make: () => void, code: string][] = [
    ['that is missing', () => {}, 'BACKUP_UNAVAILABLE'],
    ['that is empty', () => write('bad', ''), 'BACKUP_INVALID'],
    ['that is no SQLite file', () => write('bad', 'x'.repeat(8192)), 'BACKUP_INVALID'],
    ['that was cut off', () => write('bad', good().subarray(0, Math.floor(good().length / 2))), 'BACKUP_INVALID'],
    ['that was cut off in its first page', () => write('bad', good().subarray(0, 1000)), 'BACKUP_INVALID'],
    ['that lacks its last page', () => write('bad', good().subarray(0, good().length - 4096)), 'BACKUP_INVALID'],
    ['that is a folder', () => mkdirSync(join(folder, 'bad')), 'BACKUP_UNAVAILABLE'],
    ['that is a pipe', () => execFileSync('mkfifo', ['-m', '600', join(folder, 'bad')]), 'BACKUP_UNAVAILABLE'],
    [
      'of another program',
      () => {
        const db = new Database(join(folder, 'bad'));
        db.exec('create table things (id)');
        db.close();
      },
      'STORE_FOREIGN',
    ],
    [
      'with the id of another program',
      () => {
        const bytes = good();
        bytes.writeInt32BE(APPLICATION_ID + 1, 68);
        write('bad', bytes);
      },
      'STORE_FOREIGN',
    ],
    [
      'of a newer version',
      () => {
        const bytes = good();
        bytes.writeInt32BE(9999, 60);
        write('bad', bytes);
      },
      'STORE_NEWER',
    ],
    [
      'that others can write',
      () => {
        write('bad', good());
        execFileSync('chmod', ['666', join(folder, 'bad')]);
      },
      'STORE_INSECURE',
    ],
  ];
  for (const [title, make, code] of files) {
    it(`${title}, with a comparison and without`, async () => {
      make();
      await refused('bad', code);
      await refused('bad', code, '--force');
    });
  }

  for (const damage of SCHEMA_DAMAGES)
    it(`with ${damage.word} in ${damage.name} damaged, with a comparison and without`, async () => {
      write('bad', good());
      damageSchema(join(folder, 'bad'), damage);
      await refused('bad', 'BACKUP_INVALID', '--dry-run');
      await refused('bad', 'BACKUP_INVALID');
      await refused('bad', 'BACKUP_INVALID', '--force');
    });

  /** A copy of the valid backup with a changed schema. */
  const changed = (...statements: string[]) => {
    write('bad', good());
    const db = new Database(join(folder, 'bad'));
    db.unsafeMode();
    db.pragma('writable_schema = on');
    for (const statement of statements) db.exec(statement);
    db.close();
  };
  const replaced = (text: string, by: string) =>
    `update sqlite_schema set sql = replace(sql, '${text}', '${by}') where name = 'api_keys'`;

  it('whose keys are in a view, a virtual table or columns that are computed', async () => {
    for (const statements of [
      ['alter table api_keys rename to hidden', 'create view api_keys as select * from hidden'],
      [
        'alter table application_keys rename to hidden',
        'create virtual table application_keys using fts5(key_id, client_id)',
      ],
      [replaced('roles text not null', `roles text as (''["ADMIN"]'') virtual`)],
    ]) {
      changed(...statements);
      for (const more of [['--dry-run'], [], ['--force']]) await refused('bad', 'BACKUP_INVALID', ...more);
    }
  });

  it('with another schema restores only its rows', async () => {
    changed(
      'drop trigger audit_log_no_update',
      'drop index api_keys_by_creator',
      `create trigger gives after insert on audit_log begin update api_keys set roles = '["ADMIN"]'; end`,
      `create trigger adds after insert on limit_states begin update api_keys set roles = '["ADMIN"]'; end`,
      'create view seen as select * from api_keys',
      'create virtual table found using fts5(text)',
      'create index by_roles on api_keys (upper(roles))',
      'create table sessions_of_theirs (id text references api_keys (id))',
      `alter table key_uses add column note text as (upper(key_id))`,
      `update sqlite_schema set sql = replace(sql, 'default 0', 'default 1') where name = 'api_keys'`,
    );
    const found = [
      'changed table api_keys',
      'changed table key_uses',
      'extra index by_roles',
      'extra table sessions_of_theirs',
      'extra trigger adds',
      'extra trigger gives',
      'extra view seen',
      'extra virtual table found',
      'missing index api_keys_by_creator',
      'missing trigger audit_log_no_update',
    ];
    const rows = async () => readDirectly(cli.database, 'select name, roles, managed from api_keys order by name');
    const before = await rows();
    const schema = () =>
      readDirectly(cli.database, 'select type, name, sql from sqlite_schema where sql is not null order by name');
    const made = await schema();
    for (const more of [['--dry-run'], [], ['--force']]) {
      const { code, stdout } = await cli.run(['restore', join(folder, 'bad'), '--yes', '--json', ...more]);
      assert.equal(code, 0, stdout);
      const { schemaDifferences } = JSON.parse(stdout) as { schemaDifferences: SchemaDifference[] };
      assert.deepEqual(
        schemaDifferences.map(({ difference, type, name }) => `${difference} ${type} ${name}`).toSorted(),
        found,
      );
      assert.deepEqual(await rows(), before);
      assert.deepEqual(await schema(), made);
    }
    const { stdout } = await cli.run(['restore', join(folder, 'bad'), '--dry-run']);
    assert.match(stdout, /^Its schema is not as svc-api makes it: .*the trigger gives is none of svc-api's/m);
    assert.equal((await cli.run(['apikey', 'log', '--verify'])).code, 0);
  });

  it('that is the store itself, or belongs to it', async () => {
    const link = join(folder, 'link');
    symlinkSync(dirname(cli.database), link);
    const before = await contentOf(cli.database);
    for (const place of [cli.database, join(link, basename(cli.database))])
      for (const suffix of ['', '-reserve'])
        for (const more of [[], ['--force'], ['--dry-run']]) {
          const { code, stdout } = await cli.run(['restore', place + suffix, '--yes', '--json', ...more]);
          const { code: error, error: text } = JSON.parse(stdout) as { code: string; error: string };
          assert.deepEqual([code, error], [2, 'USAGE'], stdout);
          assert.match(text, /is the key store itself, or belongs to it\. Name a backup\.$/);
        }
    assert.equal(await contentOf(cli.database), before);
  });

  it('with an overwritten page', async () => {
    const bytes = good();
    bytes.fill(0xff, 5 * 4096, 6 * 4096);
    write('bad', bytes);
    await refused('bad', 'BACKUP_INVALID');
  });
});

describe('restore without a comparison', () => {
  it('is needed if the store is lost, empty or damaged, and says so', async () => {
    const cli = testCli();
    const backup = join(tempFolder(), 'backup.sqlite');
    const { key } = await cli.given('A');
    await cli.run(['backup', backup]);
    const store = readFileSync(cli.database);
    const states: [string, () => void][] = [
      ['lost', () => execFileSync('rm', [cli.database])],
      ['empty', () => writeFileSync(cli.database, '', { mode: 0o600 })],
      ['no database', () => writeFileSync(cli.database, 'x'.repeat(9000))],
      [
        'damaged',
        () =>
          writeFileSync(
            cli.database,
            Buffer.concat([store.subarray(0, 8192), Buffer.alloc(store.length - 8192, 0xaa)]),
          ),
      ],
      [
        'newer',
        () => {
          const bytes = Buffer.from(store);
          bytes.writeInt32BE(9999, 60);
          writeFileSync(cli.database, bytes);
        },
      ],
    ];
    for (const damage of SCHEMA_DAMAGES)
      states.push([
        `damaged in ${damage.name}`,
        () => {
          writeFileSync(cli.database, store);
          damageSchema(cli.database, damage);
        },
      ]);
    for (const [state, make] of states) {
      make();
      const dry = await cli.run(['restore', backup, '--dry-run', '--json']);
      assert.equal((JSON.parse(dry.stdout) as { code: string }).code, 'RESTORE_BLIND', `${state}: ${dry.stdout}`);
      const refused = await cli.run(['restore', backup, '--yes', '--json']);
      const { code, error } = JSON.parse(refused.stdout) as { code: string; error: string };
      assert.deepEqual([refused.code, code], [1, 'RESTORE_BLIND'], `${state}: ${error}`);
      assert.match(error, /--force/);
      const done = await cli.run(['restore', backup, '--yes', '--json', '--force']);
      assert.equal(done.code, 0, `${state}: ${done.stdout}`);
      const { compared, previous } = JSON.parse(done.stdout) as { compared: boolean; previous: string | null };
      assert.deepEqual([compared, previous !== null], [false, state !== 'lost'], state);
      if (previous !== null) assert.equal(statSync(previous).mode & 0o777, 0o600);
      assert.equal(statSync(cli.database).mode & 0o777, 0o600);
      assert.equal(await isAccepted(cli.database, key), true);
      const { code: verified } = await cli.run(['apikey', 'log', '--verify']);
      assert.equal(verified, 0);
      const { stdout } = await cli.run(['apikey', 'log', '--json', '--action', 'restore']);
      const { entries } = JSON.parse(stdout) as { entries: { after: { compared: boolean } }[] };
      assert.deepEqual(
        entries.map(({ after }) => after.compared),
        [false],
      );
    }
  });

  it('keeps the -wal that a killed program has left with the store that was there, and not beside the new one', async () => {
    const [cli, source] = [testCli(), testCli()];
    await source.given('A');
    const backup = join(tempFolder(), 'backup.sqlite');
    await source.run(['backup', backup]);
    const reader = new Database(source.database);
    reader.exec('begin');
    reader.prepare('select * from api_keys').all();
    for (const name of ['B', 'C']) await source.given(name);
    for (const suffix of ['', '-wal']) {
      copyFileSync(source.database + suffix, cli.database + suffix);
      chmodSync(cli.database + suffix, 0o600);
    }
    reader.close();
    const { code, stdout } = await cli.run(['restore', backup, '--yes', '--json', '--force']);
    assert.equal(code, 0, stdout);
    assert.deepEqual(await namesIn(cli.database), ['A']);
    const { previous } = JSON.parse(stdout) as { previous: string };
    assert.equal(statSync(`${previous}-wal`).mode & 0o777, 0o600);
    assert.deepEqual(await namesIn(previous), ['A', 'B', 'C']);
  });

  it('replaces the target of a link, on any file system', async () => {
    const [cli, folder] = [testCli(), tempFolder()];
    const { key } = await cli.given('A');
    const backup = join(folder, 'backup.sqlite');
    await cli.run(['backup', backup]);
    const link = join(folder, 'link.sqlite');
    symlinkSync(cli.database, link);
    await cli.given('B');
    const args = ['restore', backup, '--yes', '--json', '--force', '--database', link];
    const { code, stdout } = await cli.run(args);
    assert.equal(code, 0, stdout);
    assert.ok(lstatSync(link).isSymbolicLink());
    assert.deepEqual([await namesIn(cli.database), await isAccepted(link, key)], [['A'], true]);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.includes('.restore-')),
      [],
    );
  });

  it('does not replace a database of another program', async () => {
    const cli = testCli();
    const backup = join(tempFolder(), 'backup.sqlite');
    await cli.given('A');
    await cli.run(['backup', backup]);
    const other = join(tempFolder(), 'other.sqlite');
    const db = new Database(other);
    db.exec('create table things (id)');
    db.close();
    const args = ['restore', backup, '--yes', '--json', '--force', '--database', other];
    const { stdout } = await cli.run(args);
    assert.equal((JSON.parse(stdout) as { code: string }).code, 'STORE_FOREIGN');
  });
});
