import assert from 'node:assert/strict';
import { changeDirectly, contentOf } from '../../support/direct.ts';
import { describeOnEachAndRemotely, isRemote, itOnStores } from '../../support/dialects.ts';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SECRET, UUID } from '../../support/cli.ts';
import { type TestApply, testApply } from '../../support/apply.ts';
import { BIN, cleanEnv, finished, ROOT } from '../../support/process.ts';

const THREE = `keys:
  - name: Alpha
    description: The first
    roles: [viewer]
    expiresAt: 2034-12-31T23:59:59Z
  - {name: Beta, permissions: [docker:read_any, ME:READ_OWN], enabled: false}
  - {name: Gamma, roles: [GUEST]}
`;
const CHANGED = `keys:
  - {name: Alpha, roles: [VIEWER, GUEST], enabled: false}
  - {name: Gamma, roles: [GUEST]}
  - {name: Delta, roles: [GUEST]}
`;

describeOnEachAndRemotely('apply', () => {
  let test: TestApply;
  /** A server also records usage of its key, which changes the content. */
  const content = async () => (isRemote() ? undefined : contentOf(test.cli.database));
  beforeEach(() => {
    test = testApply();
    test.declare(THREE);
  });

  it('shows the plan as a diff with --dry-run, which writes nothing: not even a store', async () => {
    assert.deepEqual(await test.apply(['--dry-run']), {
      stdout: `+ create "Alpha"
    description: The first
    roles: VIEWER
    expiresAt: 2034-12-31T23:59:59.000Z
+ create "Beta"
    permissions: DOCKER:READ_ANY, ME:READ_OWN
    enabled: false
+ create "Gamma"
    roles: GUEST
Plan: 3 to create, 0 to update, 0 to delete, 0 unchanged.
`,
      stderr: '',
      code: 2,
    });
    assert.equal(await content(), undefined);

    await test.json();
    test.declare(CHANGED);
    const before = await content();
    assert.deepEqual(await test.apply(['--dry-run', '--prune', '--secrets-dir', test.secrets]), {
      stdout: `+ create "Delta"
    roles: GUEST
~ update "Alpha"
    description: The first -> -
    roles: VIEWER -> VIEWER, GUEST
    expiresAt: 2034-12-31T23:59:59.000Z -> -
    enabled: true -> false
- delete "Beta"
Plan: 1 to create, 1 to update, 1 to delete, 1 unchanged.
`,
      stderr: '',
      code: 2,
    });
    assert.equal(await content(), before);
    assert.equal(existsSync(test.secrets), false);
  });

  it('makes the changes, says them, and changes no byte the second time', async () => {
    await test.json();
    test.declare(CHANGED);
    const { stdout, stderr, code } = await test.apply(['--prune', '--secrets-dir', test.secrets]);
    assert.match(
      stdout,
      /^\+ create "Delta"\n.*\n- delete "Beta"\nApplied: 1 created, 1 updated, 1 deleted, 1 unchanged\.\n$/s,
    );
    assert.deepEqual([stderr, code], ['', 0]);
    assert.deepEqual(await test.names(), ['Alpha', 'Delta', 'Gamma']);

    const before = await content();
    const unchanged = { stderr: '', code: 0 };
    assert.deepEqual(await test.apply(['--prune']), {
      stdout: 'Applied: 0 created, 0 updated, 0 deleted, 3 unchanged.\n',
      ...unchanged,
    });
    assert.deepEqual(await test.apply(['--dry-run']), {
      stdout: 'Plan: 0 to create, 0 to update, 0 to delete, 3 unchanged.\n',
      ...unchanged,
    });
    assert.equal(await content(), before);
  });

  it('answers with --json in one document, with the secrets of new keys', async () => {
    const first = (await test.json()) as unknown as { keys: { key: string; name: string; id: string }[] };
    const ids = Object.fromEntries(first.keys.map(({ name, id }) => [name, id]));
    for (const { key, id } of first.keys) {
      assert.match(key, SECRET);
      assert.match(id, UUID);
    }
    test.declare(CHANGED);
    const change = (field: string, before: unknown, after: unknown) => ({ field, before, after });
    const changes = [
      { action: 'CREATE', name: 'Delta', changes: [change('roles', null, ['GUEST'])] },
      {
        action: 'UPDATE',
        name: 'Alpha',
        id: ids['Alpha'],
        changes: [
          change('description', 'The first', null),
          change('roles', ['VIEWER'], ['VIEWER', 'GUEST']),
          change('expiresAt', '2034-12-31T23:59:59.000Z', null),
          change('enabled', true, false),
        ],
      },
      { action: 'DELETE', name: 'Beta', id: ids['Beta'] },
    ];
    const others = { rotated: 0, renewed: 0, waiting: [] };
    const counts = { created: 1, updated: 1, deleted: 1, unchanged: 1, ...others };
    assert.deepEqual(await test.json('--dry-run', '--prune'), { code: 2, dryRun: true, changes, ...counts, keys: [] });
    const { keys, ...done } = (await test.json('--prune')) as unknown as {
      keys: { key: string; id: string; name: string }[];
    };
    const [{ id, key, name } = assert.fail()] = keys;
    assert.deepEqual(done, {
      code: 0,
      dryRun: false,
      changes: [{ ...changes[0], id }, ...changes.slice(1)],
      ...counts,
    });
    assert.deepEqual([name, keys.length], ['Delta', 1]);
    assert.match(key, SECRET);
    const again = { dryRun: false, changes: [], created: 0, updated: 0, deleted: 0, unchanged: 3, ...others, keys: [] };
    assert.deepEqual(await test.json('--prune'), { code: 0, ...again });
  });

  it('refuses new keys whose secrets have nowhere to go, before it changes anything', async () => {
    await test.cli.given('Gamma');
    const { stdout, stderr, code } = await test.apply();
    assert.deepEqual([stdout, code], ['', 2]);
    assert.match(
      stderr,
      /^Error: 2 keys are new, and their secrets have nowhere to go\. Pass --secrets-dir <folder>, --exec <command> or --json;/,
    );
    assert.deepEqual(await test.names(), ['Gamma']);
    test.declare('keys: [{name: Gamma, roles: [GUEST]}]');
    assert.match((await test.apply()).stdout, /roles: VIEWER -> GUEST\nApplied: 0 created, 1 updated,/);
  });

  it('leaves a key disabled that was disabled by hand, and ignores one that it did not create', async () => {
    await test.json();
    await test.cli.given('By hand');
    await test.cli.run(['apikey', 'disable', '--name', 'Alpha']);
    assert.match((await test.apply(['--prune'])).stdout, /^Applied: 0 created, 0 updated, 0 deleted, 3 unchanged\.\n$/);
    assert.match((await test.cli.run(['apikey', 'show', '--name', 'Alpha'])).stdout, /^status +DISABLED$/m);
    assert.deepEqual(await test.names(), ['Alpha', 'Beta', 'By hand', 'Gamma']);
  });

  it('does not prune a key that created others', async () => {
    const { id } = await test.cli.given('By hand');
    await test.json();
    // As if Alpha had created it over GraphQL.
    const alpha = `(select id from api_keys where name = 'Alpha')`;
    await changeDirectly(test.cli.database, `update api_keys set created_by = ${alpha} where id = '${id}'`);
    test.declare('keys: []');
    for (const args of [['--prune'], ['--prune', '--dry-run']]) {
      const { code, error } = await test.json(...args);
      assert.equal(code, 'PRUNE_REFUSED');
      assert.match(String(error), /created them: "By hand"\. Delete those first/);
    }
    assert.deepEqual(await test.names(), ['Alpha', 'Beta', 'By hand', 'Gamma']);
  });

  itOnStores('reads stdin, a pipe, and JSON', async () => {
    const script = `echo '{"$schema": "x", "keys": [{"name": "Piped", "roles": ["GUEST"]}]}' | "$@" apikey apply -f - --json &&
      "$@" apikey apply -f <(echo 'keys: []') --dry-run`;
    const shell = spawn('bash', ['-c', script, 'bash', process.execPath, BIN], {
      env: cleanEnv({ SVC_API_DATABASE: test.cli.database }),
    });
    const { stdout, code } = await finished(shell);
    assert.match(stdout, /"name": "Piped"/);
    assert.match(stdout, /Plan: 0 to create, 0 to update, 0 to delete, 0 unchanged\.\n$/);
    assert.equal(code, 0);
  });

  it('takes the example', async () => {
    test.declare(readFileSync(join(ROOT, 'examples/keys.yaml'), 'utf8'));
    const { stdout, stderr, code } = await test.apply(['--secrets-dir', test.secrets]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /\nApplied: 4 created, 0 updated, 0 deleted, 0 unchanged\.\n$/);
    assert.deepEqual(readdirSync(test.secrets).toSorted(), ['CI deploy', 'Dashboard', 'Emergency', 'Night report']);
  });
});
