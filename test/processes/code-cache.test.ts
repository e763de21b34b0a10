import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Finished, ROOT, runCli } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const CREATE = ['apikey', '--create', '--roles', 'GUEST', '--name'];

describe('the code cache', () => {
  let home: string;

  const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> => {
    const SVC_API_DATABASE = join(home, 'keys.sqlite');
    return runCli(args, {
      env: { NODE_COMPILE_CACHE: undefined, XDG_CACHE_HOME: home, SVC_API_DATABASE, ...env },
    });
  };
  const mustRun = async (args: readonly string[]) => {
    const { stdout, code } = await run(args);
    assert.equal(code, 0);
    return stdout.trim();
  };
  const caches = () =>
    readdirSync(home, { recursive: true, encoding: 'utf8' })
      .filter((path) => /(^|\/)program-[^/]*$/.test(path))
      .toSorted()
      .map((path) => join(home, path));
  /** The names of the caches, each without the sum of the build at its end. */
  const names = () =>
    caches().map((path) => {
      const [, name, build] = /([^/]*)-([^-]*)$/.exec(path)!;
      assert.equal(build, crc32(readFileSync(join(ROOT, 'dist/program.cjs'))).toString(16));
      return name;
    });

  beforeEach(() => {
    home = tempFolder();
  });

  it('is written by each build for each command that succeeded, and for help, for this user alone', async () => {
    await mustRun([...CREATE, 'A key']);
    await mustRun(['apikey', 'list']);
    await mustRun(['apikey', 'create', '--help']);
    assert.equal((await run(['apikey', 'show', 'No key'])).code, 1);
    assert.equal((await run(['apikey', 'hunter'])).code, 2);
    assert.deepEqual(names(), ['program-apikey', 'program-command-help', 'program-list']);
    for (const path of caches()) assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  it('holds no secret', async () => {
    const secret = await mustRun([...CREATE, 'A key']);
    assert.match(secret, /^svc_/);
    const [path] = caches();
    assert.equal(readFileSync(path!).includes(secret), false);
  });

  it('is used as it is, and written again once it is a day old', async () => {
    await mustRun(['--version']);
    const [path] = caches();
    const [hourAgo, dayAgo] = [1, 25].map((hours) => new Date(Date.now() - hours * 3_600_000));
    utimesSync(path!, hourAgo!, hourAgo!);
    await mustRun(['--version']);
    assert.equal(statSync(path!).mtimeMs, hourAgo!.getTime());
    utimesSync(path!, dayAgo!, dayAgo!);
    await mustRun(['--version']);
    assert.ok(statSync(path!).mtimeMs > hourAgo!.getTime());
  });

  const damages: Record<string, (path: string) => void> = {
    'has another byte': (path) => {
      const bytes = readFileSync(path);
      bytes[bytes.length >> 1]! ^= 1;
      writeFileSync(path, bytes);
    },
    'ends early': (path) => truncateSync(path, statSync(path).size >> 1),
    'is empty': (path) => truncateSync(path, 0),
  };
  for (const [what, damage] of Object.entries(damages)) {
    it(`is replaced where it ${what}`, async () => {
      await mustRun(['--version']);
      const [path] = caches();
      damage(path!);
      const damaged = readFileSync(path!);
      assert.deepEqual(await run(['--version']), { ...(await run(['--version'])), stderr: '', code: 0 });
      assert.notDeepEqual(readFileSync(path!), damaged);
      assert.deepEqual(names(), ['program-version']);
    });
  }

  it('is of a script of ASCII characters, as which it is read', () => {
    assert.doesNotMatch(readFileSync(join(ROOT, 'dist/program.cjs'), 'latin1'), /[^\0-\x7f]/);
  });

  it('is left out with NODE_DISABLE_COMPILE_CACHE', async () => {
    assert.equal((await run(['--version'], { NODE_DISABLE_COMPILE_CACHE: '1' })).code, 0);
    assert.deepEqual(names(), []);
  });

  it('is of the one file that a command loads, besides those that start it', async () => {
    const report = `import module from 'node:module';
      process.on('exit', () => console.error(JSON.stringify(Object.keys(module._cache))));`;
    const { stderr } = await run([...CREATE, 'A key'], {
      NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(report)}"`,
    });
    const files = (JSON.parse(stderr.trim().split('\n').at(-1)!) as string[]).map((file) => relative(ROOT, file));
    assert.deepEqual(
      files.filter((file) => !file.endsWith('.node')),
      [
        'bin/stand-in-for-user.cjs',
        'bin/compile-cache.cjs',
        'bin/program.cjs',
        'bin/code-cache.cjs',
        'dist/program.cjs',
      ],
    );
  });
});
