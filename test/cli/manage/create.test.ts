import assert from 'node:assert/strict';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';
import { statSync } from 'node:fs';
import { SECRET, testCli, UUID } from '../../support/cli.ts';
import { errorText } from '../../support/errors.ts';
import { keyNamed, keysIn } from '../../support/stored.ts';

describeOnEachAndRemotely('apikey --create', () => {
  it("writes only the secret to stdout, and the key's fields to stderr", async () => {
    const cli = testCli();
    const grants = ['--roles', 'GUEST,VIEWER', '--permissions', 'DOCKER:READ_ANY'];
    const { stdout, stderr, code } = await cli.run([
      'apikey',
      '--create',
      '--name',
      'CI deploy',
      ...grants,
      '--description',
      'A pipeline',
    ]);
    const publicId = SECRET.exec(stdout.trimEnd())?.[1];
    assert.ok(publicId && stdout.endsWith('\n'), `Not a secret on a line of its own: ${stdout}`);
    assert.equal(
      stderr,
      `Created API key "CI deploy" (svc_${publicId}_…) with roles GUEST and VIEWER and permissions DOCKER:READ_ANY. It does not expire. Its secret is not shown again.\n`,
    );
    assert.equal(code, 0);
  });

  it('prints key, name and id with --json, and nothing else on either stream', async () => {
    const { stdout, stderr, code } = await testCli().run([
      'apikey',
      '--create',
      '--name',
      'Robot 2',
      '--roles',
      'VIEWER',
      '--json',
    ]);
    const { key, id } = JSON.parse(stdout) as { key: string; id: string };
    assert.equal(stdout, `${JSON.stringify({ key, name: 'Robot 2', id }, null, 2)}\n`);
    assert.match(key, SECRET);
    assert.match(id, UUID);
    assert.match(stderr, /^Created API key "Robot 2" .*\n$/);
    assert.ok(!stderr.includes(key));
    assert.equal(code, 0);
  });

  it('trims the name and stores it in NFC; lists are trimmed, case-insensitive, and lose duplicates', async () => {
    const cli = testCli();
    const roles = ['--roles', ' viewer , Viewer,gUEST', '--roles', 'GUEST'];
    const permissions = ['--permissions', 'docker:read_any, Docker:Read_Any ,vms:UPDATE_own'];
    await cli.create('  Cafe\u0301  1 ', ...roles, ...permissions, '--description', '  plain  ');
    const key = await keyNamed(cli.database, 'Caf\u00e9  1');
    assert.deepEqual(
      { name: key?.name, roles: key?.roles, permissions: key?.permissions, description: key?.description },
      {
        name: 'Caf\u00e9  1',
        roles: ['VIEWER', 'GUEST'],
        permissions: ['DOCKER:READ_ANY', 'VMS:UPDATE_OWN'],
        description: 'plain',
      },
    );
  });

  it('takes names of other scripts, right-to-left letters among them, and an empty description', async () => {
    const cli = testCli();
    const names = ['مفتاح الخادم ١', 'मेरी कुंजी', 'x'.repeat(100), '7'];
    const created = await Promise.all(names.map((name) => cli.create(name, '--description', '')));
    assert.deepEqual(
      created.map(({ name }) => name),
      names,
    );
    assert.equal(new Set(created.map(({ id }) => id)).size, names.length);
  });

  it('refuses a name that is taken, in any of its spellings, and leaves the old key as it was', async () => {
    const cli = testCli();
    const old = await cli.create('Caf\u00e9');
    const args = ['apikey', '--create', '--name', ' Cafe\u0301', '--roles', 'ADMIN'];
    const [plain, json, otherCase] = await Promise.all([
      cli.run(args),
      cli.run([...args, '--json']),
      cli.create('CAF\u00c9'),
    ]);
    const text = 'An API key named "Caf\u00e9" already exists. Pass --overwrite to replace it, or choose another name.';
    assert.deepEqual(plain, { stdout: '', stderr: errorText('NAME_TAKEN', text), code: 1, signal: null });
    assert.deepEqual(json, {
      stdout: `${JSON.stringify({ error: text, code: 'NAME_TAKEN' }, null, 2)}\n`,
      stderr: '',
      code: 1,
      signal: null,
    });
    assert.equal(otherCase.name, 'CAF\u00c9');
    const kept = await keyNamed(cli.database, 'Caf\u00e9');
    assert.deepEqual([kept?.id, kept?.roles], [old.id, ['VIEWER']]);
  });

  it('replaces a key with --overwrite: new id, new secret, new grants; without such a key it simply creates', async () => {
    const cli = testCli();
    const first = await cli.create('Deploy', '--overwrite');
    const { stdout, stderr, code } = await cli.run([
      'apikey',
      '--create',
      '--name',
      'Deploy',
      '--roles',
      'GUEST',
      '--overwrite',
    ]);
    assert.equal(code, 0);
    assert.match(
      stderr,
      /^Replaced API key "Deploy" \(svc_\w{12}_…\) with roles GUEST\. It does not expire\. Its secret is not shown again\.\n$/,
    );
    const [key, ...others] = await keysIn(cli.database);
    assert.deepEqual([key?.name, others], ['Deploy', []]);
    assert.notEqual(key?.id, first.id);
    assert.equal(key?.publicId, SECRET.exec(stdout.trim())?.[1]);
    assert.deepEqual(key?.roles, ['GUEST']);
  });
});

describe('the store that apikey --create makes', () => {
  it('is readable only by its owner, whatever the umask', async () => {
    const cli = testCli();
    const umask = process.umask(0);
    try {
      await cli.create('A key');
    } finally {
      process.umask(umask);
    }
    assert.equal(statSync(cli.database).mode & 0o777, 0o600);
  });
});
