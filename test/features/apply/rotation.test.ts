import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { withKeys } from '../../../src/cli/with-keys.ts';
import { type TestApply, testApply } from '../../support/apply.ts';
import { SECRET } from '../../support/cli.ts';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';
import { changeDirectly } from '../../support/direct.ts';

const FILE = `keys:
  - {name: CI, roles: [VIEWER], expiresIn: 200d, rotate: {every: 90d, grace: 7d}}
  - {name: Night, roles: [GUEST], expiresIn: 30d}
`;
const DAY = 86_400_000;

describeOnEachAndRemotely('apply of keys that end and are rotated', () => {
  let test: TestApply;
  let first: Record<string, string>;
  beforeEach(async () => {
    test = testApply();
    test.declare(FILE);
    first = secretsIn(await test.json());
  });

  const secretsIn = ({ keys }: Record<string, unknown>) =>
    Object.fromEntries((keys as { name: string; key: string }[]).map(({ name, key }) => [name, key]));
  /** Moves the keys' creation and expiry back by days. */
  const age = (days: number) => {
    const earlier = ['created_at', 'expires_at'].map((column) => `${column} = ${column} - ${days * DAY}`);
    return changeDirectly(test.cli.database, `update api_keys set ${earlier.join(', ')} where managed = 1`);
  };
  const statusesOf = (...secrets: string[]) =>
    withKeys({ database: test.cli.database }, async (keys) => {
      const found = await Promise.all(secrets.map((secret) => keys.identify(secret, OPERATOR)));
      return found.map((one) => ('apiKey' in one ? one.status : one.unknown));
    });
  /** A program that writes its stdin to a file named after the key, and fails for other keys. */
  const sink = (takes: string) => {
    const folder = join(dirname(test.file), 'sink');
    mkdirSync(folder);
    const program = join(folder, '..', 'take secret');
    writeFileSync(
      program,
      `#!/bin/sh\ncat > "${folder}/$SVC_API_KEY_NAME"\necho "$SVC_API_KEY_ID"\ncase "$SVC_API_KEY_NAME" in ${takes}) ;; *) exit 4;; esac\n`,
    );
    chmodSync(program, 0o700);
    return { folder, command: `'${program}'` };
  };

  it('shows which keys will be rotated and renewed, and does it', async () => {
    await age(92);
    const dry = await test.apply(['--dry-run']);
    assert.match(
      dry.stdout,
      /^~ rotate "CI" \(secret is 92 days old\)\n {4}expiresAt: \S+Z -> \S+Z\n\+ renew "Night"\n {4}expiresAt: \S+Z -> \S+Z\nPlan: 0 to create, 0 to update, 1 to rotate, 1 to renew, 0 to delete, 0 unchanged\.\n$/,
    );
    assert.equal(dry.code, 2);

    const { stderr, code } = await test.apply();
    assert.equal(code, 2);
    assert.match(stderr, /^Error: 2 keys are to be rotated, and their secrets have nowhere to go\./);

    const done = await test.json();
    const { rotated, renewed, waiting, changes } = done;
    assert.deepEqual([rotated, renewed, waiting], [1, 1, []]);
    const [change] = changes as { action: string; secretSince: string }[];
    assert.equal(change!.action, 'ROTATE');
    assert.equal(Math.round((Date.now() - Date.parse(change!.secretSince)) / DAY), 92);
    const second = secretsIn(done);
    assert.deepEqual(Object.keys(second), ['CI', 'Night']);
    const all = [first['CI']!, second['CI']!, first['Night']!, second['Night']!];
    assert.deepEqual(await statusesOf(...all), ['ACTIVE', 'ACTIVE', 'ROTATED', 'ACTIVE']);
    assert.deepEqual(await test.apply(), {
      stdout: 'Applied: 0 created, 0 updated, 0 deleted, 2 unchanged.\n',
      stderr: '',
      code: 0,
    });
  });

  it('puts new secrets in the place of the earlier ones in a folder', async () => {
    await age(92);
    const { stdout } = await test.apply(['--secrets-dir', test.secrets]);
    assert.match(stdout, /\nApplied: 0 created, 0 updated, 1 rotated, 1 renewed, 0 deleted, 0 unchanged\.\n$/);
    assert.deepEqual(readdirSync(test.secrets), ['CI', 'Night']);
    const secrets = ['CI', 'Night'].map((name) => readFileSync(join(test.secrets, name), 'utf8').trim());
    assert.deepEqual(await statusesOf(...secrets), ['ACTIVE', 'ACTIVE']);
  });

  it('says which keys wait for the use of their last secret', async () => {
    test.declare('keys: [{name: CI, roles: [VIEWER], rotate: {every: 1d}}]');
    await age(2);
    assert.equal((await test.json())['rotated'], 1);
    await changeDirectly(
      test.cli.database,
      `update api_keys set rotated_at = rotated_at - ${2 * DAY} where managed = 1`,
    );
    assert.deepEqual(await test.apply(), {
      stdout:
        '= wait "CI" (rotated once its last new secret is in use)\n' +
        'Applied: 0 created, 0 updated, 0 deleted, 1 unchanged.\n',
      stderr: '',
      code: 0,
    });
    assert.deepEqual((await test.json())['waiting'], [{ name: 'CI', until: null }]);
  });

  it('hands each secret to a command on stdin, and shows none', async () => {
    const { folder, command } = sink('*');
    await age(92);
    const { stdout, stderr, code } = await test.apply(['--exec', command]);
    assert.match(stdout, /\nApplied: 0 created, 0 updated, 1 rotated, 1 renewed, 0 deleted, 0 unchanged\.\n$/);
    assert.doesNotMatch(stdout + stderr, /svc_[0-9A-Za-z]{12}_[0-9A-Za-z]/);
    assert.equal(code, 0);
    const secrets = ['CI', 'Night'].map((name) => readFileSync(join(folder, name), 'utf8'));
    for (const secret of secrets) assert.match(secret, SECRET);
    assert.deepEqual(await statusesOf(...secrets), ['ACTIVE', 'ACTIVE']);
  });

  it('takes back what the command does not take: all other changes stay', async () => {
    test.declare(`${FILE}  - {name: New, roles: [GUEST]}\n  - {name: Taken, roles: [GUEST]}\n`);
    const { folder, command } = sink('Taken');
    await age(92);
    const { stdout, stderr, code } = await test.apply(['--exec', command, '--json']);
    assert.equal(code, 1);
    const { error, code: name } = JSON.parse(stdout) as { error: string; code: string };
    assert.equal(name, 'OUTPUT_FAILED');
    assert.equal(
      error,
      [
        'The command for the secret of "New" exited with 4: that secret was revoked.',
        'The command for the secret of "CI" exited with 4: that secret was revoked.',
        'The command for the secret of "Night" exited with 4: that secret was revoked.',
        'All other changes were made.',
      ].join(' '),
    );
    assert.doesNotMatch(stdout + stderr, /svc_[0-9A-Za-z]{12}_[0-9A-Za-z]/);
    assert.deepEqual(await test.names(), ['CI', 'Night', 'Taken']);
    const lost = ['CI', 'New', 'Taken'].map((each) => readFileSync(join(folder, each), 'utf8'));
    assert.deepEqual(await statusesOf(first['CI']!, ...lost), ['ACTIVE', 'ROTATED', 'unknown', 'ACTIVE']);
  });

  it('refuses a command that is empty, and one beside a folder', async () => {
    for (const flags of [
      ['--exec', ' '],
      ['--exec', 'cat', '--secrets-dir', test.secrets],
    ]) {
      const { code, stderr } = await test.apply(flags);
      assert.equal(code, 2);
      assert.match(stderr, /Code: USAGE/);
    }
  });
});
