import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { openStore } from '../../src/store/open.ts';
import { testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { alone, runCliHere, within } from '../support/cli-here.ts';
import { cleanEnv, type Finished, runCli } from '../support/process.ts';
import { authenticate, openTestKeys } from '../support/keys.ts';
import { AS_NOBODY, runStoreChild } from '../support/store-process.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

interface Failure {
  error: string;
  code: string;
}

/** Commands that need an existing store. */
const NEED_A_STORE: readonly (readonly string[])[] = [
  ['list'],
  ['show', 'CI'],
  ['explain', 'CI', 'ME:READ_OWN'],
  ['suggest', 'CI'],
  ['usage', 'CI'],
  ['log'],
  ['log', '--verify'],
  ['log', '--follow'],
  ['scan', '.'],
  ['scan', '--revoke', '.'],
  ['update', 'CI', '--roles', 'GUEST'],
  ['enable', 'CI'],
  ['disable', 'CI'],
  ['rotate', 'CI'],
  ['update', 'CI', '--detach'],
  ['export', '--to', 'copy.sqlite'],
];

describeOnEach('a mistyped store', (dialect) => {
  for (const args of NEED_A_STORE) {
    it(`is not created by ${args.join(' ')}, which fails with its path`, async () => {
      const cli = testCli();
      const cwd = tempFolder();
      const { stdout, stderr, code } = await cli.run(
        ['apikey', ...args, '--json'],
        dialect === 'sqlite' ? { cwd } : {},
      );
      const { error, code: reason } = JSON.parse(stdout) as Failure;
      assert.deepEqual([reason, code, stderr], ['STORE_UNAVAILABLE', 1, '']);
      const shown = dialect === 'sqlite' ? cli.database : new URL(cli.database).pathname;
      assert.ok(error.includes(shown) && error.includes('does not exist'), error);
      if (dialect === 'sqlite') assert.deepEqual([readdirSync(dirname(cli.database)), readdirSync(cwd)], [[], []]);
    });
  }

  it('is not created by import --dry-run, which checks the keys as for a new one', async () => {
    const cli = testCli();
    const input = '{"name":"CI","sha256":"' + 'a'.repeat(64) + '","roles":["VIEWER"]}';
    const { stdout, code } = await cli.run(['apikey', 'import', '--dry-run', '--verbose'], { input });
    assert.deepEqual([stdout, code], ['line 1: not imported "CI"\n', 0]);
    if (dialect === 'sqlite') assert.deepEqual(readdirSync(dirname(cli.database)), []);
    assert.equal((await cli.run(['apikey', 'list'])).code, 1, 'there is still none');
  });

  it('is not created by export, which writes nothing', async () => {
    const cli = testCli();
    const { stdout, stderr, code } = await cli.run(['apikey', 'export']);
    assert.deepEqual([stdout, code], ['', 1]);
    assert.match(
      stderr,
      /^Error: The key store \S+ does not exist\. Check the (path|address)\.\nCode: STORE_UNAVAILABLE\n/,
    );
  });

  it('is not created by delete, which names it', async () => {
    const cli = testCli();
    const chosen = await cli.run(['apikey', '--delete', '--json']);
    const { message } = JSON.parse(chosen.stdout) as { message: string };
    assert.match(message, /^No API keys found to delete: there are none in \S+$/);
    const named = await cli.run(['apikey', '--delete', '--name', 'CI', '--json']);
    assert.deepEqual([chosen.code, named.code], [0, 1]);
    if (dialect === 'sqlite') assert.ok(!existsSync(cli.database));
    assert.equal((await cli.run(['apikey', 'list'])).code, 1, 'there is still none');
  });
});

describe('a mistyped store file', () => {
  it('is not created by verify, which fails with its path', async () => {
    const database = tempStore();
    const args = ['apikey', 'verify', '-', '--json', '--database', database];
    const { stdout, code } = await runCliHere(args, { input: 'not-a-secret' });
    const error = `The key store ${database} does not exist. Check the path.`;
    assert.deepEqual([JSON.parse(stdout), code], [{ error, code: 'STORE_UNAVAILABLE' }, 1]);
    assert.ok(!existsSync(database));
  });
});

describe('an empty file in place of the store', () => {
  for (const args of NEED_A_STORE) {
    it(`is not made one by ${args.join(' ')}`, async () => {
      const database = tempStore();
      writeFileSync(database, '');
      const { stdout, code } = await runCliHere(['apikey', ...args, '--json', '--database', database], {
        cwd: tempFolder(),
      });
      const { error, code: reason } = JSON.parse(stdout) as Failure;
      assert.deepEqual(
        [error, reason, code],
        [`The key store ${database} is an empty file. Check the path.`, 'STORE_UNAVAILABLE', 1],
      );
    });
  }
});

/** Two other users. */
const [NOBODY, DAEMON] = [65_534, 1];
const IS_ROOT = process.getuid?.() === 0;

/** A store with a key, closed. */
async function closedStore(database = tempStore()): Promise<string> {
  const { keys, store } = await openTestKeys({ database });
  await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
  await store.close();
  return database;
}

/** Puts the -wal file of another store, with a key of the attacker's, beside ours. */
async function plantWal(path: string): Promise<void> {
  const { keys, store } = await openTestKeys();
  await keys.create({ name: 'Planted', roles: ['ADMIN'] }, OPERATOR);
  copyFileSync(`${store.location}-wal`, path);
  await store.close();
}

interface UnsafeStore {
  what: string;
  /** Needs root, to change the owner of a file. */
  asRoot?: boolean;
  /** Runs as a user other than root. */
  asNobody?: boolean;
  make: (path: string) => void | Promise<void>;
  error: RegExp;
}

const UNSAFE: UnsafeStore[] = [
  {
    what: 'that a group can write',
    make: (path) => chmodSync(path, 0o660),
    error: /can be written by others \(mode 0660\), .* chmod 600/,
  },
  { what: 'that all can write', make: (path) => chmodSync(path, 0o602), error: /\(mode 0602\)/ },
  {
    what: 'in a folder that a group can write',
    make: (path) => chmodSync(dirname(path), 0o770),
    error: /^The folder (\S+) of the key store can be written by others \(mode 0770\)\. .* run chmod 700 \1\. /,
  },
  { what: 'in a folder that all can write', make: (path) => chmodSync(dirname(path), 0o777), error: /mode 0777/ },
  {
    what: 'whose -wal file a group can write',
    make: async (path) => {
      await plantWal(`${path}-wal`);
      chmodSync(`${path}-wal`, 0o660);
    },
    error: /another user created \S+-wal/,
  },
  {
    what: 'whose -journal file is a link',
    make: (path) => symlinkSync('/etc/passwd', `${path}-journal`),
    error: /another user created \S+-journal/,
  },
  {
    what: 'whose -wal file another user has put into a sticky folder',
    asRoot: true,
    make: async (path) => {
      chmodSync(dirname(path), 0o1777);
      await plantWal(`${path}-wal`);
      chownSync(`${path}-wal`, NOBODY, NOBODY);
    },
    error: /another user created \S+-wal/,
  },
  {
    what: 'of a user who does not own its folder',
    asRoot: true,
    make: (path) => chownSync(path, NOBODY, NOBODY),
    error: /belongs to another user \(65534\)\. Run as that user/,
  },
  {
    what: 'at a link that another user has made',
    asRoot: true,
    make: (path) => {
      renameSync(path, `${path}.real`);
      symlinkSync(`${path}.real`, path);
      lchownSync(path, NOBODY, NOBODY);
    },
    error: /belongs to another user/,
  },
  {
    what: 'behind a link, in a folder that all can write',
    make: async (path) => {
      const elsewhere = tempFolder();
      renameSync(path, join(elsewhere, 'keys.sqlite'));
      symlinkSync(join(elsewhere, 'keys.sqlite'), path);
      chmodSync(elsewhere, 0o777);
    },
    error: /^The folder \S+ of the key store can be written by others/,
  },
  {
    what: 'of another user, for one who is not root',
    asRoot: true,
    asNobody: true,
    make: (path) => {
      for (const each of [path, dirname(path)]) chownSync(each, DAEMON, DAEMON);
      chmodSync(dirname(path), 0o755);
      chmodSync(path, 0o644);
    },
    error: /belongs to another user \(1\)/,
  },
  {
    what: 'in a folder of another user, for one who is not root',
    asRoot: true,
    asNobody: true,
    make: (path) => {
      chownSync(path, NOBODY, NOBODY);
      chownSync(dirname(path), DAEMON, DAEMON);
      chmodSync(dirname(path), 0o755);
    },
    error: /^The folder \S+ of the key store belongs to another user \(1\)/,
  },
];

describe('a store file', () => {
  for (const { what, asRoot = false, asNobody = false, make, error } of UNSAFE) {
    if (asRoot && !IS_ROOT) continue;
    it(`${what} is refused`, async () => {
      const path = await closedStore();
      await make(path);
      if (asNobody) {
        const { code, message } = await runStoreChild(['write', path, 'New'], AS_NOBODY);
        assert.equal(code, 'STORE_INSECURE');
        assert.match(String(message), error);
      } else await assert.rejects(openStore({ database: path }), { code: 'STORE_INSECURE', message: error });
    });
  }

  it('is not made in a folder that others can write, where something is: nothing is left there', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'other'), '');
    chmodSync(folder, 0o770);
    const database = join(folder, 'keys.sqlite');
    await assert.rejects(openStore({ database }), { code: 'STORE_INSECURE', message: /mode 0770/ });
    assert.deepEqual(readdirSync(folder), ['other']);
  });

  it('makes an empty folder of its user private, as it does its files', async () => {
    const folder = tempFolder();
    chmodSync(folder, 0o777);
    const umask = process.umask(0);
    try {
      await closedStore(join(folder, 'keys.sqlite'));
    } finally {
      process.umask(umask);
    }
    assert.equal(statSync(folder).mode & 0o7777, 0o700);
    for (const name of readdirSync(folder)) assert.equal(statSync(join(folder, name)).mode & 0o7777, 0o600, name);
  });

  it('whose modes were all opened up is used again after the one command of the error', async () => {
    const path = await closedStore();
    chmodSync(dirname(path), 0o777);
    for (const name of readdirSync(dirname(path))) chmodSync(join(dirname(path), name), 0o666);
    const error = await openStore({ database: path }).then(
      () => assert.fail(),
      (thrown: Error) => thrown,
    );
    const [, command] = / run (chmod .*?)\. In a container/.exec(error.message) ?? assert.fail(error.message);
    execFileSync('sh', ['-c', command!]);
    await (await openStore({ database: path })).close();
  });

  it('that others can write is used with SVC_API_STORE_MODE=shared, with a warning of servers and doctor', async () => {
    const path = await closedStore();
    chmodSync(path, 0o666);
    chmodSync(dirname(path), 0o777);
    const env = { SVC_API_DATABASE: path, SVC_API_STORE_MODE: 'shared' };
    assert.equal((await runCliHere(['apikey', 'list'], { env })).code, 0);
    const { stdout } = await runCliHere(['apikey', 'doctor', '--json'], { env });
    const { checks } = JSON.parse(stdout) as { checks: { check: string; status: string; message: string }[] };
    const access = checks.filter(({ check }) => check === 'ACCESS');
    assert.match(access[0]!.message, /^SVC_API_STORE_MODE=shared/);
    assert.ok(
      access.every(({ status }) => status === 'warning'),
      stdout,
    );
    const problems = await alone(() =>
      within({ env }, async () => {
        const store = await openStore();
        const found = await store.settingProblems();
        await store.close();
        return found;
      }),
    );
    assert.match(String(problems), /^SVC_API_STORE_MODE=shared: .* can create keys\. Unset it/);
    const wrong = await runCliHere(['apikey', 'list', '--json'], { env: { ...env, SVC_API_STORE_MODE: 'open' } });
    assert.equal((JSON.parse(wrong.stdout) as Failure).code, 'USAGE');
  });

  it('has a place that doctor checks before there is one', async () => {
    const folder = tempFolder();
    const database = join(folder, 'keys.sqlite');
    const access = async () => {
      const { stdout } = await runCliHere(['apikey', 'doctor', '--json', '--database', database]);
      const { checks } = JSON.parse(stdout) as { checks: { check: string; status: string }[] };
      return checks.find(({ check }) => check === 'ACCESS')!.status;
    };
    chmodSync(folder, 0o777);
    assert.equal(await access(), 'skipped', 'the first command makes it private');
    writeFileSync(join(folder, 'other'), '');
    assert.equal(await access(), 'failure');
    assert.equal(statSync(folder).mode & 0o7777, 0o777);
  });

  if (IS_ROOT)
    it('that is named is used by a user without access to the folder of HOME', async () => {
      const [home, folder] = [tempFolder(), tempFolder()];
      chmodSync(home, 0o700);
      chownSync(folder, NOBODY, NOBODY);
      const env = cleanEnv({ HOME: home, SVC_API_DATABASE: join(folder, 'keys.sqlite') });
      for (const args of [['create', '--name', 'CI', '--roles', 'GUEST'], ['list'], ['doctor'], ['--help']]) {
        const { code, stderr } = await runCli(['apikey', ...args], { ...AS_NOBODY, env });
        assert.equal(code, 0, stderr);
        assert.doesNotMatch(stderr, /EACCES/);
      }
    });

  if (IS_ROOT)
    it('in a folder of root is refused with the command that gives it to its user', async () => {
      const folder = tempFolder();
      chmodSync(folder, 0o755);
      const { code, message } = await runStoreChild(['write', join(folder, 'keys.sqlite'), 'New'], AS_NOBODY);
      assert.equal(code, 'STORE_UNAVAILABLE');
      assert.ok(String(message).includes(`chown 65534 ${folder}`), String(message));
    });

  if (IS_ROOT)
    it('in a missing folder is refused with a command that gives its user no folder above it', async () => {
      const above = tempFolder();
      chmodSync(above, 0o755);
      const folder = join(above, 'svc-api');
      const { code, message } = await runStoreChild(['write', join(folder, 'keys.sqlite'), 'New'], AS_NOBODY);
      assert.equal(code, 'STORE_UNAVAILABLE');
      assert.ok(String(message).includes(`install -d -m 700 -o 65534 ${folder}`), String(message));
      assert.doesNotMatch(String(message), /chown/);
    });

  it('below a folder that all can write is refused', async () => {
    const outer = tempFolder();
    const path = await closedStore(join(outer, 'own', 'keys.sqlite'));
    chmodSync(outer, 0o777);
    await assert.rejects(openStore({ database: path }), { code: 'STORE_INSECURE', message: /mode 0777/ });
    chmodSync(outer, 0o1777);
    await (await openStore({ database: path })).close();
  });

  it('that others can write is refused by every command that opens it', async () => {
    const [path, safe] = [await closedStore(), await closedStore()];
    chmodSync(path, 0o620);
    for (const args of [
      ['create', '--name', 'New', '--roles', 'ADMIN'],
      ['create', '--name', 'New', '--roles', 'ADMIN', '--dry-run'],
      ['list'],
      ['delete', '--name', 'CI'],
      ['log', '--verify'],
      ['export', '--to', join(tempFolder(), 'copy.sqlite')],
      ['export', '--database', safe, '--to', path],
    ]) {
      const { stdout, code } = await runCliHere(['apikey', ...args, '--json'], { env: { SVC_API_DATABASE: path } });
      assert.deepEqual([(JSON.parse(stdout) as Failure).code, code], ['STORE_INSECURE', 1], args.join(' '));
    }
    const serve = await runCli(['serve', '--port', '0', '--database', path]);
    assert.deepEqual([serve.stdout, serve.code], ['', 1]);
  });

  it('that others can write is refused when it is moved under a running server', async () => {
    const { keys, store } = await openTestKeys();
    const { key: secret } = await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const other = await closedStore();
    chmodSync(other, 0o666);
    renameSync(other, store.location);
    await yieldToEventLoop();
    await assert.rejects(authenticate(keys, secret), { code: 'STORE_INSECURE' });
    await store.close();
  });

  it('that all can read, such as a restored copy, is made private', async () => {
    const path = await closedStore();
    chmodSync(path, 0o644);
    await (await openStore({ database: path })).close();
    assert.equal(statSync(path).mode & 0o7777, 0o600);
  });

  if (IS_ROOT) {
    it("in a service user's folder is used by root, and belongs to that user when root creates it", async () => {
      const folder = tempFolder();
      chownSync(folder, NOBODY, NOBODY);
      const path = join(folder, 'keys.sqlite');
      const { keys, store } = await openTestKeys({ database: path });
      await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
      for (const name of readdirSync(folder)) assert.equal(statSync(join(folder, name)).uid, NOBODY, name);
      await store.close();
      assert.deepEqual(await runStoreChild(['write', path, 'New'], AS_NOBODY), { written: ['New'] });
    });
  }
});

describe('the compile cache', () => {
  const CACHE = join('svc-api', 'compile-cache');
  /** The user's cache and temporary folders. */
  let home: string;
  let temporary: string;

  const run = (env: NodeJS.ProcessEnv = {}, options: object = {}): Promise<Finished> =>
    runCli(['--version'], {
      ...options,
      env: { NODE_COMPILE_CACHE: undefined, HOME: home, XDG_CACHE_HOME: home, TMPDIR: temporary, ...env },
    });
  const makeCache = () => mkdirSync(join(home, CACHE), { recursive: true });
  const assertWorks = ({ stderr, code }: Finished) => assert.deepEqual([stderr, code], ['', 0]);

  beforeEach(() => {
    [home, temporary] = [tempFolder(), tempFolder()];
  });
  afterEach(() => assert.deepEqual(readdirSync(temporary), [], 'nothing is read from the shared temporary folder'));

  it("is in a folder of the user's own that others cannot enter", async () => {
    assertWorks(await run());
    for (const folder of ['svc-api', CACHE]) assert.equal(statSync(join(home, folder)).mode & 0o7777, 0o700);
    assert.notDeepEqual(readdirSync(join(home, CACHE)), []);
    assertWorks(await run({ XDG_CACHE_HOME: 'relative' }));
    assert.notDeepEqual(readdirSync(join(home, '.cache', CACHE)), []);
  });

  const unsafe: Record<string, () => void> = {
    'is itself writable by a group': () => chmodSync(join(home, CACHE), 0o770),
    'is itself writable by all, though sticky': () => chmodSync(join(home, CACHE), 0o1777),
    'is in a folder that others can write': () => chmodSync(join(home, 'svc-api'), 0o777),
    'is below a folder that others can write': () => chmodSync(home, 0o777),
    ...(IS_ROOT && {
      'belongs to another user': () => chownSync(join(home, CACHE), NOBODY, NOBODY),
      'is below a folder of another user': () => chownSync(home, NOBODY, NOBODY),
    }),
  };
  for (const [what, make] of Object.entries(unsafe)) {
    it(`is not used where it ${what}`, async () => {
      makeCache();
      make();
      assertWorks(await run());
      assert.deepEqual(readdirSync(join(home, CACHE)), []);
    });
  }

  if (IS_ROOT) {
    it('is not used through a link that another user has made', async () => {
      makeCache();
      const shared = tempFolder();
      chmodSync(shared, 0o1777);
      symlinkSync(join(home, 'svc-api'), join(shared, 'svc-api'));
      lchownSync(join(shared, 'svc-api'), NOBODY, NOBODY);
      assertWorks(await run({ XDG_CACHE_HOME: shared }));
      assert.deepEqual(readdirSync(join(home, CACHE)), []);
    });

    it('is not created in the home folder of another user', async () => {
      chownSync(home, NOBODY, NOBODY);
      assertWorks(await run({ XDG_CACHE_HOME: '' }));
      assert.deepEqual(readdirSync(home), []);
    });
  }

  it('is left out where it cannot be created', async () => {
    chmodSync(home, 0o555);
    const env = { XDG_CACHE_HOME: join(home, 'none') };
    if (IS_ROOT) chmodSync(temporary, 0o777);
    assertWorks(await run(env, AS_NOBODY));
    assertWorks(await run({ HOME: undefined, XDG_CACHE_HOME: '/dev/null' }));
  });

  it('is not in the working directory, which an empty HOME would mean', async () => {
    const cwd = tempFolder();
    assertWorks(await run({ HOME: '', XDG_CACHE_HOME: '' }, { cwd }));
    assert.deepEqual(readdirSync(cwd), []);
  });

  it('holds no secret', async () => {
    const create = ['apikey', 'create', '--name', 'A', '--roles', 'GUEST', '--database', join(home, 'keys.sqlite')];
    const { stdout, stderr } = await runCli(create, { env: { NODE_COMPILE_CACHE: undefined, XDG_CACHE_HOME: home } });
    assert.match(stdout, /^svc_/, stderr);
    const files = readdirSync(join(home, CACHE), { recursive: true, withFileTypes: true }).filter((each) =>
      each.isFile(),
    );
    assert.ok(files.length > 0);
    for (const { parentPath, name } of files)
      assert.equal(readFileSync(join(parentPath, name)).includes(stdout.trim()), false, name);
  });

  it('is where NODE_COMPILE_CACHE says, or nowhere with NODE_DISABLE_COMPILE_CACHE', async () => {
    const chosen = tempFolder();
    assertWorks(await run({ NODE_COMPILE_CACHE: chosen }));
    assert.notDeepEqual(readdirSync(chosen), []);
    assertWorks(await run({ NODE_DISABLE_COMPILE_CACHE: '1' }));
    assert.deepEqual(readdirSync(home), []);
  });
});
