import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { type Finished, runCli, runCliWithInput } from '../support/process.ts';
import { AS_NOBODY } from '../support/store-process.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

interface Failure {
  error: string;
  code: string;
}

/** Commands that need a store which is there. */
const NEED_A_STORE: readonly (readonly string[])[] = [
  ['list'],
  ['show', 'CI'],
  ['can', 'CI', 'ME:READ_OWN'],
  ['suggest', 'CI'],
  ['log'],
  ['log', '--verify'],
  ['log', '--follow'],
  ['scan', '.'],
  ['scan', '--revoke', '.'],
  ['update', 'CI', '--roles', 'GUEST'],
  ['enable', 'CI'],
  ['disable', 'CI'],
  ['rotate', 'CI'],
  ['adopt', 'CI'],
  ['copy', '--to', 'copy.sqlite'],
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

  it('is not created by export, which writes nothing', async () => {
    const cli = testCli();
    const { stdout, stderr, code } = await cli.run(['apikey', 'export']);
    assert.deepEqual([stdout, code], ['', 1]);
    assert.match(stderr, /^Error: The key store \S+ does not exist\. Check the (path|address)\.\n$/);
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
    const { stdout, code } = await runCliWithInput('not-a-secret', args);
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
      const { stdout, code } = await runCli(['apikey', ...args, '--json', '--database', database], {
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

describe('the compile cache', () => {
  const CACHE = join('svc-api', 'compile-cache');
  const isRoot = process.getuid?.() === 0;
  /** The cache folder and the temporary folder of the user. */
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
    ...(isRoot && {
      'belongs to another user': () => chownSync(join(home, CACHE), 65_534, 65_534),
      'is below a folder of another user': () => chownSync(home, 65_534, 65_534),
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

  if (isRoot) {
    it('is not used through a link that another user has made', async () => {
      makeCache();
      const shared = tempFolder();
      chmodSync(shared, 0o1777);
      symlinkSync(join(home, 'svc-api'), join(shared, 'svc-api'));
      execFileSync('chown', ['--no-dereference', '65534', join(shared, 'svc-api')]);
      assertWorks(await run({ XDG_CACHE_HOME: shared }));
      assert.deepEqual(readdirSync(join(home, CACHE)), []);
    });

    it('is not created in the home folder of another user', async () => {
      chownSync(home, 65_534, 65_534);
      assertWorks(await run({ XDG_CACHE_HOME: '' }));
      assert.deepEqual(readdirSync(home), []);
    });
  }

  it('is left out where it cannot be created', async () => {
    chmodSync(home, 0o555);
    const env = { XDG_CACHE_HOME: join(home, 'none') };
    if (isRoot) chmodSync(temporary, 0o777);
    assertWorks(await run(env, AS_NOBODY));
    assertWorks(await run({ HOME: undefined, XDG_CACHE_HOME: '/dev/null' }));
  });

  it('is where NODE_COMPILE_CACHE says, or nowhere with NODE_DISABLE_COMPILE_CACHE', async () => {
    const chosen = tempFolder();
    assertWorks(await run({ NODE_COMPILE_CACHE: chosen }));
    assert.notDeepEqual(readdirSync(chosen), []);
    assertWorks(await run({ NODE_DISABLE_COMPILE_CACHE: '1' }));
    assert.deepEqual(readdirSync(home), []);
  });
});
