import assert from 'node:assert/strict';
import { existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCliHere } from '../support/cli-here.ts';
import type { Finished } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const CREATE = ['apikey', '--create', '--name', 'A key', '--roles', 'GUEST'];
const STORE = join('svc-api', 'keys.sqlite');

function create(env: NodeJS.ProcessEnv, args: readonly string[] = [], cwd = tempFolder()): Promise<Finished> {
  return runCliHere([...CREATE, ...args], { cwd, env });
}

describe('where the store is', () => {
  it('is what --database says, before SVC_API_DATABASE, before XDG_DATA_HOME, before the home folder', async () => {
    const folder = tempFolder();
    const at = (name: string) => join(folder, name);
    const home = { HOME: at('home') };
    const xdg = { ...home, XDG_DATA_HOME: at('xdg') };
    const named = { ...xdg, SVC_API_DATABASE: at('named.sqlite') };
    const results = await Promise.all([
      create(named, ['--database', at('flag.sqlite')]),
      create(named),
      create({ ...xdg, SVC_API_DATABASE: '' }),
      create(home),
    ]);
    assert.deepEqual(
      results.map(({ code }) => code),
      [0, 0, 0, 0],
    );
    const paths = ['flag.sqlite', 'named.sqlite', join('xdg', STORE), join('home', '.local', 'share', STORE)];
    for (const path of paths) assert.equal(statSync(at(path)).mode & 0o777, 0o600, path);
    assert.equal(statSync(at('xdg/svc-api')).mode & 0o777, 0o700);
  });

  it('ignores a relative XDG_DATA_HOME, and takes a relative --database from the working folder', async () => {
    const cwd = tempFolder();
    const home = tempFolder();
    const results = await Promise.all([
      create({ HOME: home, XDG_DATA_HOME: 'data' }, [], cwd),
      create({ HOME: home }, ['--database', 'here.sqlite'], cwd),
    ]);
    for (const { code, stderr } of results) assert.equal(code, 0, stderr);
    assert.ok(existsSync(join(home, '.local', 'share', STORE)));
    assert.ok(existsSync(join(cwd, 'here.sqlite')));
    assert.ok(!existsSync(join(cwd, 'data')));
  });

  it('is never an empty path or an address of something else', async () => {
    const cwd = tempFolder();
    const addresses = ['', '  ', 'mysql://user:hunter2@db/keys'];
    const [empty, blank, mysql] = await Promise.all(
      addresses.map((path) => create({}, ['--database', path, '--json'], cwd)),
    );
    const usage = (error: string): Finished => ({
      stdout: `${JSON.stringify({ error, code: 'USAGE' }, null, 2)}\n`,
      stderr: '',
      code: 2,
      signal: null,
    });
    assert.deepEqual(empty, usage('The path of the key store is empty. Pass --database <path>, or leave it out.'));
    assert.deepEqual(blank, empty);
    assert.deepEqual(
      mysql,
      usage('A key store at a mysql address is not supported. Pass the path of a file, or a postgres:// URL.'),
    );
  });

  it('says what is wrong with a path that holds no store, with a code of its own and exit 1', async () => {
    const folder = tempFolder();
    const at = (name: string) => join(folder, name);
    writeFileSync(at('text.sqlite'), 'This is a text, not a database. '.repeat(100));
    writeFileSync(at('file'), '');
    mkdirSync(at('folder'));
    symlinkSync(at('loop'), at('loop'));
    const rows = [
      ['text.sqlite', 'STORE_CORRUPT'],
      ['folder', 'STORE_UNAVAILABLE'],
      [join('file', 'keys.sqlite'), 'STORE_UNAVAILABLE'],
      ['loop', 'STORE_UNAVAILABLE'],
    ] as const;
    for (const [path, code] of rows) {
      const [plain, asJson] = await Promise.all([
        create({}, ['--database', at(path)]),
        runCliHere(['apikey', '--delete', '--name', 'A key', '--database', at(path), '--json']),
      ]);
      assert.ok(plain.stderr.startsWith(`Error: The key store ${at(path)} `), plain.stderr);
      assert.match(plain.stderr, new RegExp(`^.*\nCode: ${code}\nReference: \\S+\n$`), 'one line');
      assert.deepEqual([plain.stdout, plain.code], ['', 1]);
      const { error, ...rest } = JSON.parse(asJson.stdout) as { error: string };
      assert.deepEqual([rest, asJson.stderr, asJson.code], [{ deleted: 0, code }, '', 1]);
      assert.ok(error.startsWith(`The key store ${at(path)} `));
    }
  });
});
