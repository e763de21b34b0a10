import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { openKeys } from '../../../src/service/open-keys.ts';
import { type TestApply, testApply } from '../../support/apply.ts';
import { SECRET } from '../../support/cli.ts';
import { errorText } from '../../support/errors.ts';
import { BIN, cleanEnv, finished } from '../../support/process.ts';
import { AS_NOBODY } from '../../support/store-process.ts';
import { keysIn } from '../../support/stored.ts';
import { tempFolder } from '../../support/temp.ts';
import { authenticate } from '../../support/keys.ts';

const TWO = 'keys: [{name: One key, roles: [GUEST]}, {name: Ключ, roles: [VIEWER]}]';
const modeOf = (path: string) => (lstatSync(path).mode & 0o7777).toString(8);

describe('the secrets of applied keys', () => {
  let test: TestApply;
  beforeEach(() => {
    test = testApply();
    test.declare(TWO);
  });

  it('go into files named after their keys, readable only by their owner, whatever the umask', async () => {
    const args = ['apikey', 'apply', '-f', test.file, '--secrets-dir', test.secrets, '--json'];
    const shell = spawn('bash', ['-c', 'umask 000; exec "$@"', 'bash', process.execPath, BIN, ...args], {
      env: cleanEnv({ SVC_API_DATABASE: test.cli.database }),
    });
    const { stdout } = await finished(shell);
    const { keys } = JSON.parse(stdout) as { keys: { name: string; id: string; file: string }[] };
    assert.doesNotMatch(stdout, /svc_/);
    assert.deepEqual(
      keys.map(({ file }) => file),
      ['One key', 'Ключ'].map((name) => join(test.secrets, name)),
    );
    assert.deepEqual([dirname(test.secrets), test.secrets, ...keys.map(({ file }) => file)].map(modeOf), [
      '700',
      '700',
      '600',
      '600',
    ]);
    assert.deepEqual(readdirSync(test.secrets).length, 2, 'nothing is left beside them');
    const store = await openKeys({ database: test.cli.database });
    for (const { name, id, file } of keys) {
      const text = readFileSync(file, 'utf8');
      assert.match(text.trimEnd(), SECRET);
      assert.equal(text, `${text.trimEnd()}\n`);
      const found = await authenticate(store, text.trimEnd());
      assert.ok('principal' in found && found.principal.apiKey.id === id && found.principal.apiKey.name === name);
    }
    await store.close();
  });

  it('take the place of a file or a link of the same name, and follow no link', async () => {
    mkdirSync(test.secrets, { recursive: true });
    const target = join(tempFolder(), 'target');
    writeFileSync(target, 'as it was');
    symlinkSync(target, join(test.secrets, 'One key'));
    writeFileSync(join(test.secrets, 'Ключ'), 'old', { mode: 0o644 });
    assert.equal((await test.apply(['--secrets-dir', test.secrets])).code, 0);
    assert.equal(readFileSync(target, 'utf8'), 'as it was');
    for (const name of ['One key', 'Ключ']) {
      const file = join(test.secrets, name);
      assert.ok(lstatSync(file).isFile());
      assert.equal(modeOf(file), '600');
      assert.match(readFileSync(file, 'utf8').trimEnd(), SECRET);
    }
  });

  it('leave no key and no file where one cannot be written', async () => {
    const blocked = join(test.secrets, 'Ключ');
    mkdirSync(blocked, { recursive: true });
    const notAFolder = join(tempFolder(), 'file');
    writeFileSync(notAFolder, '');
    for (const [folder, code] of [
      [test.secrets, 'EISDIR'],
      [notAFolder, 'EEXIST'],
      [join(notAFolder, 'below'), 'ENOTDIR'],
      ['/dev/full', 'EEXIST'],
    ] as const) {
      const args = ['apikey', 'apply', '-f', test.file, '--secrets-dir', folder];
      const failed = await test.cli.runProcess(args);
      const text = `The secrets could not be written to ${folder} (${code}). Nothing was changed.`;
      const expected = errorText('OUTPUT_FAILED', text);
      assert.deepEqual(failed, { stdout: '', stderr: expected, code: 1, signal: null });
    }
    assert.deepEqual(readdirSync(test.secrets), ['Ключ']);
    assert.deepEqual(await test.names(), []);
  });

  it('leave no key and no file where the folder is read-only', async () => {
    const home = tempFolder();
    const secrets = join(home, 'secrets');
    mkdirSync(secrets);
    for (const folder of [home, dirname(test.file)]) chmodSync(folder, 0o1777);
    chmodSync(secrets, 0o555);
    const { uid, gid } = AS_NOBODY;
    if (uid !== undefined && gid !== undefined) chownSync(home, uid, gid);
    const database = join(home, 'keys.sqlite');
    const args = ['apikey', 'apply', '-f', test.file, '--secrets-dir', secrets, '--database', database];
    const failed = await test.cli.runProcess(args, { ...AS_NOBODY, env: { HOME: home } });
    assert.match(
      failed.stderr,
      /^Error: The secrets could not be written to .* \(EACCES\)\. Nothing was changed\.\nCode: OUTPUT_FAILED\n/,
    );
    assert.equal(failed.code, 1);
    assert.deepEqual(readdirSync(secrets), []);
    assert.deepEqual(await keysIn(database), []);
  });

  it('leave the files as they were where the store cannot be written', async () => {
    await test.cli.given('Kept');
    mkdirSync(test.secrets, { recursive: true });
    writeFileSync(join(test.secrets, 'One key'), 'older');
    const { default: Database } = await import('better-sqlite3');
    const file = new Database(test.cli.database);
    file.exec(
      `CREATE TRIGGER broken BEFORE INSERT ON audit_log WHEN NEW.key_name = 'One key' BEGIN SELECT RAISE(ABORT, 'broken'); END`,
    );
    const failed = await test.apply(['--secrets-dir', test.secrets]);
    assert.match(failed.stderr, /^Error: The key store .* failed/);
    assert.deepEqual(readdirSync(test.secrets), ['One key']);
    assert.equal(readFileSync(join(test.secrets, 'One key'), 'utf8'), 'older');
    file.close();
    assert.deepEqual(await test.names(), ['Kept']);
  });

  it('leave everything as it was where the JSON that holds them cannot be written out', async () => {
    await test.json();
    const before = await keysIn(test.cli.database);
    test.declare('keys: [{name: One key, roles: [ADMIN]}, {name: New, roles: [GUEST]}]');
    const args = ['apikey', 'apply', '-f', test.file, '--prune', '--json'];
    for (const script of ['"$@" > /dev/full', '"$@" >&-', 'exec 3> >(exec true); wait $!; "$@" >&3']) {
      const env = cleanEnv({ SVC_API_DATABASE: test.cli.database });
      const { stderr, code } = await finished(
        spawn('bash', ['-c', script, 'bash', process.execPath, BIN, ...args], { env }),
      );
      assert.match(
        stderr,
        /could not be written to stdout \(\w+\)\. All changes were reverted, because the new secrets could not be delivered\.\nCode: OUTPUT_FAILED\n/,
      );
      assert.equal(code, 1);
      assert.deepEqual(await keysIn(test.cli.database), before);
    }

    // Secrets written to files do not depend on stdout.
    const env = cleanEnv({ SVC_API_DATABASE: test.cli.database });
    const kept = ['bash', process.execPath, BIN, ...args, '--secrets-dir', test.secrets];
    const { stderr, code } = await finished(spawn('bash', ['-c', '"$@" > /dev/full', ...kept], { env }));
    assert.match(stderr, /could not be written to stdout \(ENOSPC\)\. The changes were made\.\nCode: OUTPUT_FAILED\n/);
    assert.equal(code, 1);
    assert.deepEqual([await test.names(), readdirSync(test.secrets)], [['New', 'One key'], ['New']]);
  });

  it('have names that are short enough for a file', async () => {
    const long = '鍵'.repeat(86);
    test.declare(`keys:\n  - {name: Short, roles: [GUEST]}\n  - roles: [GUEST]\n    name: ${long}\n`);
    const { code, error } = await test.json('--secrets-dir', test.secrets);
    const message = `${test.file}:4:11: The name is 258 bytes long; with --secrets-dir, at most 255 are allowed.`;
    assert.deepEqual([code, error], ['DECLARATION_INVALID', message]);
    assert.throws(() => statSync(test.secrets), { code: 'ENOENT' });
    assert.equal((await test.json())['created'], 2);
  });
});
