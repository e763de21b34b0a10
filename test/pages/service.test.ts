import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SECRET } from '../support/cli.ts';
import { blockWith } from '../support/pages.ts';
import { cleanEnv, ROOT } from '../support/process.ts';
import { query } from '../support/server.ts';
import { NOBODY, serviceMachine } from '../support/service-machine.ts';
import { needsRoot } from '../support/skip.ts';

const PAGE = 'docs/deploying.md';

const owner = (path: string) => statSync(path).uid;

describe('docs/deploying.md, as root', () => {
  before(function () {
    needsRoot(this);
  });

  const LIST = blockWith('apikey list', PAGE);
  const CREATE = LIST.replace('apikey list', 'apikey create --name Own --roles GUEST');

  it('has commands that are run as the service’s user, on its store', async () => {
    const { run, store, database } = serviceMachine();
    assert.match((await run(CREATE)).stdout.trim(), SECRET);
    assert.match((await run(LIST)).stdout, /^Own\tACTIVE\tGUEST\t/);
    assert.deepEqual([owner(database), existsSync(join(store, 'keys.sqlite-reserve'))], [NOBODY, true]);
  });

  it('has a command of its own for that, which takes flags as they are', async () => {
    const { run, database } = serviceMachine();
    const { stdout, code } = await run(blockWith('service-keys create', PAGE));
    assert.equal(code, 0);
    assert.match(stdout.trim(), SECRET);
    assert.match((await run('service-keys list --search "CI deploy"')).stdout, /^CI deploy\tACTIVE\tVIEWER\t/);
    assert.equal(owner(database), NOBODY);
  });

  it('describes what happens to a service user who does not name the store', async () => {
    const { stderr, code } = await serviceMachine().run(LIST.replace(/env SVC_API_DATABASE=\S+/, 'env'));
    assert.match(stderr, /does not exist|permission denied/);
    assert.equal(code, 1);
  });

  it('says what happens if root names the store: its files belong to the owner of its folder, others to root', async () => {
    const { run, folder, store, database } = serviceMachine();
    const apply = `printf 'keys: [{ name: A, roles: [GUEST] }]' | svc-api apikey apply -f - --secrets-dir ${folder}/secrets`;
    const { code, stderr } = await run(apply, { SVC_API_DATABASE: database });
    assert.equal(code, 0, stderr);
    assert.deepEqual([database, join(store, 'keys.sqlite-reserve'), join(folder, 'secrets', 'A')].map(owner), [
      NOBODY,
      NOBODY,
      0,
    ]);
    assert.match((await run(LIST)).stdout, /^A\t/);
    assert.match((await run(LIST.replace('apikey list', 'apikey log'))).stdout, /\tcli root\tCREATE\t/);
  });

  it('says what happens if root does not: another store', async () => {
    const { run, home, database } = serviceMachine();
    await run(CREATE);
    await run('svc-api apikey create --name Lost --roles GUEST', { XDG_DATA_HOME: undefined });
    assert.ok(existsSync(join(home, '.local/share/svc-api/keys.sqlite')));
    assert.doesNotMatch((await run(LIST)).stdout, /Lost/);
    assert.equal(owner(database), NOBODY);
  });

  it('says what mends a store that root has made before its folder had its owner', async () => {
    const { run, store, database } = serviceMachine();
    chownSync(store, 0, 0);
    await run('svc-api apikey create --name A --roles GUEST', { SVC_API_DATABASE: database });
    assert.match((await run(LIST)).stderr, /permission denied/);
    const [, mend] = /`(chown -R .*?)`/.exec(readFileSync(join(ROOT, PAGE), 'utf8'))!;
    await run(mend!);
    assert.match((await run(LIST)).stdout, /^A\t/);
  });

  it('has a unit whose program needs no home, and goes by the configuration of the commands', async () => {
    const { folder, store, env, here, run } = serviceMachine();
    const unit = readFileSync(join(ROOT, 'examples/systemd/svc-api.service'), 'utf8');
    const setting = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)![1]!;
    assert.deepEqual([setting('User'), setting('StateDirectory')], ['svc-api', 'svc-api']);
    const assignments = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line]) => line!.split(' '));
    const given = Object.fromEntries(assignments.map((each) => here(each).split('=') as [string, string]));
    assert.ok(assignments.includes('SVC_API_DATABASE=/var/lib/svc-api/keys.sqlite'));
    const config = join(folder, 'etc/svc-api');
    mkdirSync(config, { recursive: true });
    writeFileSync(join(config, 'svc-api.yaml'), 'resources: [WIKI]');
    // ProtectHome=yes hides all homes.
    assert.equal(setting('ProtectHome'), 'yes');
    const homes = join(folder, 'homes');
    mkdirSync(homes, { mode: 0 });
    const server = spawn('sh', ['-c', `umask ${setting('UMask')}; exec ${setting('ExecStart')} --port 0`], {
      cwd: '/',
      uid: NOBODY,
      gid: NOBODY,
      env: cleanEnv({ ...env, HOME: join(homes, 'svc-api'), ...given, LOG_LEVEL: 'error' }),
    });
    try {
      const [line] = (await Promise.race([once(server.stdout, 'data'), once(server.stderr, 'data')])) as [Buffer];
      const [, url] = /^Listening on (\S+)\n$/.exec(String(line)) ?? assert.fail(String(line));
      const { stdout } = await run(CREATE.replace('GUEST', 'GUEST --permissions WIKI:READ_ANY'));
      const { body } = await query(url!, stdout.trim(), '{ me { name effectivePermissions { resource } } }');
      assert.deepEqual(body, {
        data: {
          me: {
            name: 'Own',
            effectivePermissions: ['ME', 'ONLINE', 'WELCOME', 'WIKI'].map((resource) => ({ resource })),
          },
        },
      });
      assert.ok(existsSync(join(store, 'keys.sqlite')));
    } finally {
      server.kill();
    }
  });

  it('has a command of a guard for the unit', async () => {
    const { folder, env, database } = serviceMachine();
    const [, command] = /^ExecStart=(.+)$/m.exec(blockWith('svc-api guard', PAGE, 'ini'))!;
    const guard = spawn('sh', ['-c', `exec ${command} --port 0`], {
      cwd: folder,
      uid: NOBODY,
      gid: NOBODY,
      env: cleanEnv({ ...env, SVC_API_DATABASE: database, LOG_LEVEL: 'error' }),
    });
    try {
      const [line] = (await Promise.race([once(guard.stdout, 'data'), once(guard.stderr, 'data')])) as [Buffer];
      const [, url] = /^Listening on (\S+)\n$/.exec(String(line)) ?? assert.fail(String(line));
      assert.equal((await fetch(url!)).status, 401);
    } finally {
      guard.kill();
    }
  });
});
