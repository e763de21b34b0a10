import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestCli, testCli } from '../support/cli.ts';
import { cliOnTerminal } from '../support/pty.ts';
import { tempFolder } from '../support/temp.ts';

const DECLARED = `resources: [WIKI, { name: VAULT_ITEM, credentials: true }]
roles: { EDITOR: [WIKI:READ_ANY, WIKI:UPDATE_ANY] }
`;

describe('the resources and roles of svc-api.yaml', () => {
  let cli: TestCli;
  let folder: string;
  let file: string;
  const run = (args: readonly string[], input = '') =>
    cli.run(['apikey', ...args], { input, env: { XDG_CONFIG_HOME: folder } });
  const json = async (...args: string[]) => {
    const { stdout, stderr } = await run([...args, '--json']);
    return JSON.parse(stdout || stderr) as Record<string, unknown>;
  };
  const must = async (args: readonly string[], input = '') => {
    const { code, stdout, stderr } = await run(args, input);
    assert.equal(code, 0, stderr);
    return { stdout, stderr };
  };
  beforeEach(() => {
    cli = testCli();
    folder = tempFolder();
    file = join(folder, 'svc-api', 'svc-api.yaml');
    mkdirSync(join(folder, 'svc-api'));
    writeFileSync(file, DECLARED);
  });

  it('are granted, filtered by, checked and suggested by all commands', async () => {
    await must(['create', 'Made', '--roles', 'editor', '--permissions', 'wiki:delete_own']);
    await must(['create', 'Viewer', '--roles', 'VIEWER']);
    await must(['update', 'Viewer', '--permissions', 'WIKI:CREATE_OWN']);
    await must(['import'], JSON.stringify({ name: 'Moved', secret: 'a'.repeat(30), roles: ['EDITOR'] }));
    const keys = join(folder, 'keys.yaml');
    writeFileSync(keys, 'keys: [{ name: Declared, roles: [EDITOR], permissions: [VAULT_ITEM:READ_ANY] }]');
    await must(['apply', '-f', keys, '--secrets-dir', join(folder, 'secrets')]);
    const { keys: editors } = (await json('list', '--roles', 'EDITOR')) as { keys: { name: string }[] };
    assert.deepEqual(
      editors.map(({ name }) => name),
      ['Made', 'Moved', 'Declared'],
    );
    const can = async (name: string, permission: string) => (await run(['explain', name, permission])).stdout;
    assert.equal(await can('Made', 'WIKI:UPDATE_ANY'), 'yes: role EDITOR\n');
    assert.match(await can('Viewer', 'WIKI:READ_ANY'), /^yes: role VIEWER/);
    assert.match(await can('Viewer', 'VAULT_ITEM:READ_ANY'), /^no/);
    const shown = await json('show', 'Made');
    const permissions = ['READ_ANY', 'READ_OWN', 'UPDATE_ANY', 'UPDATE_OWN', 'DELETE_OWN'];
    assert.deepEqual(
      shown['effectivePermissions'],
      permissions.map((action) => `WIKI:${action}`),
    );
    assert.match((await must(['suggest', 'Made'])).stderr, /needed none of its grants/);
    const preview = await json('create', 'New', '--roles', 'VIEWER', '--dry-run');
    assert.ok((preview['effectivePermissions'] as string[]).includes('WIKI:READ_ANY'));
    const { stdout: secret } = await must(['create', 'Other', '--roles', 'EDITOR']);
    const verified = await run(['verify', '-', '--permission', 'WIKI:READ_ANY'], secret);
    assert.deepEqual([verified.code, verified.stdout.endsWith('has WIKI:READ_ANY\n')], [0, true], verified.stdout);
    const exec = ['exec', '--roles', 'EDITOR', '--permissions', 'WIKI:DELETE_ANY', '--', 'true'];
    const executed = await cli.runProcess(['apikey', ...exec], { env: { XDG_CONFIG_HOME: folder } });
    assert.deepEqual([executed.code, executed.stderr], [0, '']);
    assert.match((await run(['create', 'Wrong', '--roles', 'EDITORS'])).stderr, /Did you mean EDITOR\?/);
  });

  it('come from --config, then SVC_API_CONFIG, then the user', async () => {
    const [one, two] = [join(folder, 'one.yaml'), join(folder, 'two.yaml')];
    writeFileSync(one, 'resources: [ONE]');
    writeFileSync(two, 'resources: [TWO]');
    const known = async (resource: string, args: readonly string[], env: NodeJS.ProcessEnv) => {
      const create = ['apikey', 'create', 'A', '--dry-run', '--permissions', `${resource}:READ_ANY`, ...args];
      return (await cli.run(create, { env: { XDG_CONFIG_HOME: folder, ...env } })).code === 0;
    };
    assert.ok(await known('WIKI', [], {}));
    assert.ok(await known('TWO', [], { SVC_API_CONFIG: two }));
    assert.ok(await known('ONE', ['--config', one], { SVC_API_CONFIG: two }));
    assert.ok(!(await known('WIKI', ['--config', one], {})));
  });

  it('that are declared no longer are shown as unknown, kept by other changes, and can be removed', async () => {
    await must(['create', 'Old', '--roles', 'EDITOR,GUEST', '--permissions', 'WIKI:DELETE_OWN,DOCKER:READ_ANY']);
    writeFileSync(file, 'resources: []');
    assert.deepEqual((await json('show', 'Old'))['unknownGrants'], ['EDITOR', 'WIKI:DELETE_OWN']);
    assert.match((await must(['show', 'Old'])).stdout, /^unknownGrants +EDITOR, WIKI:DELETE_OWN$/m);
    assert.equal((await must(['list', '--columns', 'unknown-grants'])).stdout, 'EDITOR, WIKI:DELETE_OWN\n');
    assert.match((await run(['explain', 'Old', 'DOCKER:READ_ANY'])).stdout, /^yes/);
    const surroundings = { SVC_API_DATABASE: cli.database, XDG_CONFIG_HOME: folder };
    const terminal = cliOnTerminal(['apikey', 'list'], surroundings, undefined, { columns: 120 });
    assert.equal(await terminal.end(), 0);
    assert.match(terminal.screen, /EDITOR \(unknown\), GUEST, WIKI:DELETE_OWN \(unknown\), DOCKER:READ_ANY/);
    const changed = await json('update', 'Old', '--description', 'kept');
    assert.deepEqual((changed['apiKey'] as { roles: string[] }).roles, ['EDITOR', 'GUEST']);
    assert.match((await run(['explain', 'Old', 'WIKI:DELETE_OWN'])).stderr, /"WIKI" is not a resource/);
    await must(['update', 'Old', '--roles', 'GUEST', '--permissions', 'DOCKER:READ_ANY']);
    assert.deepEqual((await json('show', 'Old'))['unknownGrants'], []);
  });

  it('that are wrong stop every command that goes by them, with exit code 2, but no key from being taken away', async () => {
    await must(['create', 'Leaked', '--roles', 'EDITOR']);
    await must(['create', 'Other', '--roles', 'EDITOR']);
    writeFileSync(file, 'resources: [wiki]');
    for (const args of [['list'], ['show', 'Leaked'], ['create', 'New', '--roles', 'VIEWER'], ['enable', 'Leaked']]) {
      const { code, stderr } = await run(args);
      assert.equal(code, 2);
      assert.match(stderr, /^Error: \S+svc-api\.yaml:1:13: "wiki" is not a resource name.*\nCode: CONFIG_INVALID\n/);
    }
    assert.equal((await json('list'))['code'], 'CONFIG_INVALID');
    const disabled = await must(['disable', 'Leaked']);
    assert.equal(disabled.stdout, 'API key "Leaked" is disabled\n');
    assert.match(
      disabled.stderr,
      /^Warning: \S+svc-api\.yaml:1:13: .*\nKeys can be disabled, revoked and deleted all the same\.\n$/,
    );
    const planned = await must(['delete', 'Other', '--dry-run']);
    assert.match(planned.stderr, /all the same/);
    await must(['delete', 'Other']);
  });
});
