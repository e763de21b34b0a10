import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Permission } from '../../src/keys/permissions/catalog.ts';
import type { NewKey } from '../../src/keys/key/key-change.ts';
import type { Finished } from '../support/process.ts';
import { type TestCli, testCli } from '../support/cli.ts';
import { runCliHere } from '../support/cli-here.ts';
import { jsonLines, openTestKeys } from '../support/keys.ts';
import { APP } from '../features/consent/support/consent.ts';
import { CALLER, type RemoteStore, remoteStore, stopRemoteStores } from '../support/remote.ts';
import { startTestService } from '../support/server.ts';
import { keyNamed, namesIn } from '../support/stored.ts';
import { tempFolder } from '../support/temp.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';
import { Consent } from '../../src/features/consent/consent.ts';

/** An answer without the place where resources and actions are declared: this machine's file or the server's. */
function withoutPlace(answer: Finished): Finished {
  const stderr = answer.stderr.replaceAll(/ (?:Resources|Actions) of your own are declared under .*\.$/gm, '');
  return { ...answer, stderr };
}

describe('commands by a server', () => {
  let cli: TestCli;
  let server: RemoteStore;
  let env: NodeJS.ProcessEnv;
  beforeEach(async () => {
    cli = testCli();
    server = await remoteStore(cli.database);
    env = { SVC_API_SERVER: server.url, SVC_API_KEY: server.key };
  });
  afterEach(stopRemoteStores);
  const remotely = (args: readonly string[], more: NodeJS.ProcessEnv = {}, input = '') =>
    runCliHere(['apikey', ...args], { env: { ...env, ...more }, input });
  const locally = (args: readonly string[], input = '') => cli.run(['apikey', ...args], { input });
  /** Runs a command on the store and through the server, after the server has written the usage that commands show. */
  const answersEqually = async (args: readonly string[], input = '') => {
    await server.flush();
    const [remote, local] = [await remotely(args, {}, input), await locally(args, input)];
    assert.deepEqual(withoutPlace(remote), withoutPlace(local), args.join(' '));
  };
  const asKey = async (fields: Partial<NewKey>) => ({ SVC_API_KEY: (await cli.given('Limited', fields)).key });

  it('answer as they do on the store, to the letter', async () => {
    await cli.given('Parent', { roles: ['ADMIN'], limits: ['100/m'], allowFrom: ['127.0.0.0/8'] });
    await cli.given('CI', { permissions: ['VMS:READ_OWN', 'DOCKER:READ_ANY', 'VMS:UPDATE_OWN'], description: 'Ä “b”' });
    await remotely(['create', 'Child', '--roles', 'GUEST', '--expires-in', '3d']);
    await locally(['rotate', 'CI', '--grace', '1h']);
    await locally(['disable', 'Parent']);
    await locally(['delete', 'Parent']);
    const person = { issuer: 'https://id.example.org', subject: '248', name: 'ada@example.org' };
    const imported = await locally(['import', '-'], JSON.stringify({ name: 'Ada', roles: ['VIEWER'], person }));
    assert.equal(imported.code, 0, imported.stderr);
    const declared = 'keys: [{name: CI, roles: [GUEST], enabled: false}, {name: New, permissions: [ME:READ_OWN]}]';
    const all = (verb: string) => [[verb], [verb, '--json'], [verb, '--limit', '2', '--json'], [verb, '--limit', '1']];
    for (const args of [
      ...all('list'),
      ...all('log'),
      ['list', '--all'],
      ['list', '--owner', 'ada@example.org', '--json'],
      ['list', '--owner', CALLER],
      ['list', '--owner', 'Nobody'],
      ['show', 'Ada', '--json'],
      ['rotate', 'Ada'],
      ['update', 'Ada', '--roles', 'ADMIN', '--json'],
      ['create', 'Ada', '--roles', 'GUEST', '--overwrite'],
      ['list', '--status', 'gone'],
      ['list', '--roles', 'GEST'],
      ['list', '--columns', 'name,grants,allow-from'],
      ['log', '--before', '4', '--json'],
      ['log', '--key', 'CI', '--json'],
      ['log', '--action', 'rotate', '--since', '1h', '--until', '2099-01-01'],
      ['log', '--action', 'fly'],
      ['log', '--since', 'x'],
      ['show', 'CI'],
      ['show', 'Child', '--json'],
      ['show', 'Nobody', '--json'],
      ['show', CALLER],
      ['explain', 'CI', 'docker:read_own', '--json'],
      ['explain', 'CI', 'DOCKER:FLY'],
      ['explain', 'CI', 'ME:READ_OWN'],
      ['suggest', 'CI', '--json'],
      ['create', 'A b', '--roles', 'guest', '--permissions', 'vms:read_any', '--dry-run', '--json'],
      ['create', 'a-b', '--roles', 'GEST', '--rate', '5/x', '--expires-in', 'soon'],
      ['create', 'CI', '--roles', 'GUEST'],
      ['update', 'CI', '--rename', 'Child'],
      ['update', 'CI', '--expires-at', 'tomorrow'],
      ['update', 'CI', '--no-permissions'],
      ['rotate', 'CI'],
      ['rotate', 'CI', '--grace', '1y', '--activate', 'later'],
      ['rotate', 'Child', '--finish'],
      ['delete', 'Nobody', '--json'],
      ['enable', 'Nobody'],
      ['apply', '-f', '-', '--dry-run'],
      ['apply', '-f', '-', '--dry-run', '--json'],
      ['apply', '-f', '-'],
    ])
      await answersEqually(args, declared);
    const wrong = 'keys:\n  - {name: A, roles: [GUEST], expiresAt: 2020-01-01T00:00:00Z}\n  - {name: B, roles: [GEST]}';
    const late = wrong.replace('GEST', 'GUEST');
    for (const text of [wrong, late]) await answersEqually(['apply', '-f', '-'], text);
  });

  it('decide what applications ask for as they do on the store, to the letter', async () => {
    const { keys, store, time } = await openTestKeys({ database: cli.database });
    time.now = Date.now();
    const ask = (permissions: Permission[], keyExpiresIn?: string) =>
      keys.feature(Consent).ask({ client: APP, roles: ['GUEST'], permissions, keyExpiresIn, address: '192.0.2.7' });
    const { handle, request } = await ask(['VMS:READ_OWN', 'DOCKER:READ_ANY', 'VMS:UPDATE_OWN'], '12h');
    const denied = await ask(['GONE:READ_ANY']);
    await keys.feature(Consent).deny(denied.request, 'operator');
    await ask(['GONE:READ_ANY']);
    await keys.feature(Consent).approve(request, { permissions: ['vms:read_own'] }, 'operator');
    const pending = await ask([]);
    await store.close();
    for (const args of [
      ['requests', 'list'],
      ['requests', 'list', '--json'],
      ['requests', 'list', '--limit', '1', '--json'],
      ['requests', 'list', '--limit', '500', '--json'],
      ['requests', 'list', '--limit', '501'],
      ['requests', 'approve', handle],
      ['requests', 'approve', handle, '--yes'],
      ['requests', 'approve', denied.handle, '--json'],
      ['requests', 'approve', 'nonsense', '--json'],
      ['requests', 'approve', pending.handle, '--roles', 'GEST', '--permissions', 'VMS:FLY', '--yes'],
      ['requests', 'approve', pending.handle, '--roles', 'ADMIN', '--yes'],
      ['requests', 'approve', pending.handle, '--expires-at', 'tomorrow', '--yes'],
      ['requests', 'deny', 'nonsense'],
      ['requests', 'deny', denied.request.id, '--yes', '--json'],
      ['requests', 'deny', pending.request.id],
      ['requests', 'deny', pending.request.id, '--yes'],
    ])
      await answersEqually(args);
  });

  it('list more keys than one answer has', async () => {
    const { keys, store, time } = await openTestKeys({ database: cli.database });
    time.now = Date.now();
    const line = (_: unknown, index: number) => ({
      name: `Key ${index}`,
      sha256: index.toString(16).padStart(64, '0'),
      roles: ['GUEST'],
    });
    await importKeys(keys, jsonLines(...Array.from({ length: 520 }, line)));
    await store.close();
    for (const args of [
      ['list', '--all', '--json'],
      ['list', '--limit', '500', '--json'],
      ['list', '--search', 'key 51', '--all'],
      ['list', '--all', '--status', 'active', '--roles', 'guest'],
    ])
      await answersEqually(args);
  });

  it('have the permissions of their key, and report missing ones', async () => {
    await cli.given('CI');
    const limited = await asKey({ permissions: ['API_KEY:CREATE_OWN', 'API_KEY:READ_OWN', 'PERMISSION:READ_ANY'] });
    const refused = async (code: string, message: RegExp, ...args: string[]) => {
      const { stdout, stderr, code: exit } = await remotely([...args, '--json'], limited);
      const { error, code: shown } = JSON.parse(stdout) as { error: string; code: string };
      assert.deepEqual([shown, exit, stderr], [code, 1, '']);
      assert.match(error, message);
    };
    await refused(
      'FORBIDDEN',
      /^A key cannot grant more than it holds: this key lacks ARRAY:READ_ANY, /,
      'create',
      'X',
      '--roles',
      'VIEWER',
    );
    await refused('NOT_FOUND', /no API key named "CI"/, 'update', 'CI', '--roles', 'GUEST');
    await refused('FORBIDDEN', /^This key lacks LOGS:READ_ANY\.$/, 'log');
    await refused('FORBIDDEN', /^This key lacks API_KEY:DELETE_OWN\.$/, 'delete', 'Limited');
    const made = await remotely(['create', 'Mine', '--permissions', 'API_KEY:READ_OWN'], limited);
    assert.equal(made.code, 0, made.stderr);
    await refused('NAME_CONFUSABLE', /looks like/, 'create', 'Мine', '--permissions', 'API_KEY:READ_OWN');
    const { id } = (await keyNamed(cli.database, 'Limited'))!;
    assert.equal((await keyNamed(cli.database, 'Mine'))?.createdBy, id);
    const listed = await remotely(['list'], limited);
    assert.deepEqual(
      listed.stdout
        .trim()
        .split('\n')
        .map((line) => line.split('\t')[0]),
      ['Limited', 'Mine'],
    );
  });

  for (const [verb, needed, ...args] of [
    ['list', 'API_KEY:READ_OWN'],
    ['show', 'API_KEY:READ_OWN', 'Limited'],
    ['explain', 'API_KEY:READ_OWN', 'Limited', 'ME:READ_OWN'],
    ['suggest', 'API_KEY:READ_OWN', 'Limited'],
    ['create', 'API_KEY:CREATE_OWN,PERMISSION:READ_ANY', 'New', '--permissions', 'PERMISSION:READ_OWN'],
    ['update', 'API_KEY:READ_OWN,API_KEY:UPDATE_OWN', 'Limited', '--description', 'x'],
    ['enable', 'API_KEY:READ_OWN,API_KEY:UPDATE_OWN', 'Limited'],
    ['rotate', 'API_KEY:READ_OWN,API_KEY:UPDATE_OWN', 'Limited'],
    ['delete', 'API_KEY:READ_OWN,API_KEY:DELETE_OWN', 'Limited'],
    ['apply', 'API_KEY:UPDATE_OWN,PERMISSION:READ_ANY', '-f', '-'],
    ['log', 'LOGS:READ_ANY'],
    ['requests list', 'API_KEY:CREATE_ANY'],
  ] as const) {
    it(`need for ${verb} what docs/reference.md says, and no more`, async () => {
      const permissions = needed.split(',') as Permission[];
      const run = async (held: Permission[]) => {
        const result = await remotely(
          [...verb.split(' '), ...args],
          await asKey({ permissions: held, overwrite: true }),
          'keys: []',
        );
        return { ...result, code: verb === 'explain' && result.code === 4 ? 0 : result.code };
      };
      const { code, stderr } = await run(permissions);
      assert.equal(code, 0, stderr);
      for (const left of permissions) {
        const others = permissions.filter((permission) => permission !== left);
        const lacking = await run(others.length > 0 ? others : ['ME:READ_OWN']);
        assert.match(lacking.stderr, new RegExp(`this key lacks ${left}\\.\nCode: FORBIDDEN`, 'i'));
      }
    });
  }

  it('use the resources and roles of the server, and not those of this machine', async () => {
    const service = await startTestService({ resources: ['WIKI'], roles: { EDITOR: ['WIKI:READ_ANY'] } });
    try {
      service.time.now = Date.now();
      const { key: secret } = await service.keys.create({ name: 'Root', roles: ['ADMIN'] }, 'operator');
      const place = { SVC_API_SERVER: service.url, SVC_API_KEY: secret };
      const grants = ['--roles', 'editor', '--permissions', 'wiki:update_any'];
      assert.equal((await remotely(['create', 'Wiki', ...grants], place)).code, 0);
      assert.match((await remotely(['show', 'Wiki'], place)).stdout, /^effectivePermissions +WIKI:READ_ANY, /m);
      assert.match((await remotely(['create', 'X', '--roles', 'EDITR'], place)).stderr, /Did you mean EDITOR\?/);
      assert.match((await remotely(['create', 'X', ...grants])).stderr, /"editor" is not a role/);
    } finally {
      await service.stop();
    }
  });

  it('change nothing where the secrets of new keys have nowhere to go', async () => {
    const secrets = join(tempFolder(), 'secrets');
    mkdirSync(join(secrets, 'Blocked'), { recursive: true });
    const text = 'keys: [{name: Blocked, roles: [GUEST]}]';
    const { stderr, code } = await remotely(['apply', '-f', '-', '--secrets-dir', secrets], {}, text);
    assert.match(stderr, /^Error: The secrets could not be written to .* \(EISDIR\)\. Nothing was changed\.\n/);
    assert.equal(code, 1);
    assert.deepEqual(await namesIn(cli.database), []);
    assert.doesNotMatch((await locally(['log'])).stdout, /Blocked/);
  });

  it('rotate the key that they send, which then is another', async () => {
    const { stdout, stderr, code } = await remotely(['rotate', CALLER, '--grace', '0s']);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /The previous one, svc_.{12}_…, is refused now\.\n$/);
    assert.match((await remotely(['list'])).stderr, /Code: UNAUTHENTICATED/);
    assert.equal((await remotely(['list'], { SVC_API_KEY: stdout.trim() })).code, 0);
  });
});
