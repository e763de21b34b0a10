import assert from 'node:assert/strict';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { withKeys } from '../../src/cli/with-keys.ts';
import { fillStore } from '../support/big-store.ts';
import { finished, runCli, startCli } from '../support/process.ts';
import { namesIn } from '../support/stored.ts';
import { tempFolder, tempStore } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { Transfer } from '../../src/features/transfer/transfer.ts';

const KEYS = 3000;

/** Asserts that only this user can access the files in a folder, or a file and SQLite's files beside it. */
function assertPrivate(folder: string): void {
  for (const name of readdirSync(folder)) {
    const stat = statSync(join(folder, name), { throwIfNoEntry: false });
    if (stat) assert.equal((stat.mode & 0o777).toString(8), '600', name);
  }
}

/** Starts a command and waits for a condition. Then kills it some milliseconds later, unless it has ended. */
async function runAndKill(
  args: readonly string[],
  folder: string,
  when: () => boolean,
  wait: number,
): Promise<boolean> {
  const child = startCli(args, { stdio: 'ignore' });
  const ended = finished(child);
  const state = { hasEnded: false };
  void ended.then(() => (state.hasEnded = true));
  const look = () => {
    assertPrivate(folder);
    return state.hasEnded || when();
  };
  await until(look);
  const deadline = performance.now() + wait;
  await until(() => look() && (state.hasEnded || performance.now() >= deadline));
  child.kill('SIGKILL');
  const { signal } = await ended;
  return signal === 'SIGKILL';
}

/** Runs the tests of a `describe` with an umask that allows everything. */
function withOpenUmask(): void {
  const umask = process.umask();
  before(() => void process.umask(0));
  after(() => void process.umask(umask));
}

const has = (folder: string, infix: string) => readdirSync(folder).some((name) => name.includes(infix));

describe('backup that is killed', () => {
  withOpenUmask();
  let store: string;
  before(async () => {
    store = tempStore();
    await fillStore(store, KEYS);
  });

  for (const wait of [0, 5, 20, 50, 90, 140, 200, 300]) {
    it(`${wait} ms after it began to write leaves nothing that looks whole, and no file that others may read`, async () => {
      const folder = tempFolder();
      const path = join(folder, 'backup.sqlite');
      await runAndKill(['backup', path, '--database', store], folder, () => has(folder, '.partial-'), wait);
      if (existsSync(path)) {
        const { code, stderr } = await runCli(['restore', path, '--dry-run', '--database', store]);
        assert.equal(code, 0, stderr);
      }
      const { code, stderr } = await runCli(['backup', path, '--overwrite', '--database', store]);
      assert.equal(code, 0, stderr);
    });
  }

  it('by a signal that it can handle removes its output', async () => {
    const folder = tempFolder();
    const path = join(folder, 'backup.sqlite');
    const child = startCli(['backup', path, '--database', store, '--json']);
    const ended = finished(child);
    await until(() => has(folder, '.partial-') || child.exitCode !== null);
    child.kill('SIGTERM');
    const { code, stdout } = await ended;
    // The kill can come after its end.
    if (code !== 0) assert.deepEqual([code, (JSON.parse(stdout) as { code: string }).code], [143, 'INTERRUPTED']);
    assert.deepEqual(readdirSync(folder), code === 0 ? ['backup.sqlite'] : []);
  });
});

describe('restore that is killed', () => {
  withOpenUmask();
  const moments = [
    ...[0, 20, 60].map((wait) => ({ infix: '.restore-', wait })),
    ...[0, 10, 30, 60, 100, 160, 240].map((wait) => ({ infix: '.replaced-', wait })),
  ];
  for (const { infix, wait } of moments) {
    it(`${wait} ms after there was a file ${infix}… has restored all or nothing`, async () => {
      const store = tempStore();
      const backup = join(tempFolder(), 'backup.sqlite');
      await fillStore(store, KEYS);
      await runCli(['backup', backup, '--database', store]);
      await withKeys({ database: store }, async (keys) => {
        for (const name of ['Imported 1', 'Imported 2'])
          await keys.delete([(await keys.findByName(name, OPERATOR))!.id], OPERATOR);
        for (const name of ['New 1', 'New 2']) await keys.create({ name, roles: ['GUEST'] }, OPERATOR);
      });
      const args = ['restore', backup, '--yes', '--restore-revoked', 'Imported 1', '--database', store];
      await runAndKill(args, dirname(store), () => has(dirname(store), infix), wait);
      const { code, stdout } = await runCli(['apikey', 'log', '--verify', '--database', store]);
      assert.equal(code, 0, stdout);
      const all = new Set(await allNames(store));
      const state = ['Imported 1', 'Imported 2', 'New 1', 'New 2'].map((name) => all.has(name));
      const [before, after] = [
        [false, false, true, true],
        [true, false, false, false],
      ];
      assert.ok(
        [before, after].some((each) => JSON.stringify(each) === JSON.stringify(state)),
        JSON.stringify(state),
      );
      const again = await runCli([...args, '--json']);
      assert.equal(again.code, 0, again.stdout);
      assert.equal(new Set(await allNames(store)).has('New 1'), false);
    });
  }

  it('by a signal that it hears removes its copy of the backup', async () => {
    const store = tempStore();
    const backup = join(tempFolder(), 'backup.sqlite');
    await fillStore(store, KEYS);
    await runCli(['backup', backup, '--database', store]);
    const folder = dirname(store);
    const child = startCli(['restore', backup, '--dry-run', '--database', store, '--json']);
    const ended = finished(child);
    await until(() => has(folder, '.restore-') || child.exitCode !== null);
    child.kill('SIGTERM');
    const { code, stdout } = await ended;
    // The kill can come after its end.
    if (code !== 0) assert.deepEqual([code, (JSON.parse(stdout) as { code: string }).code], [143, 'INTERRUPTED']);
    assert.equal(has(folder, '.restore-'), false);
  });

  for (const wait of [0, 10, 30, 60, 100, 160]) {
    it(`without a comparison, ${wait} ms after its copy was begun, leaves a whole store or none`, async () => {
      const store = tempStore();
      const backup = join(tempFolder(), 'backup.sqlite');
      await fillStore(store, 1000);
      await runCli(['backup', backup, '--database', store]);
      rmSync(store);
      const folder = dirname(store);
      const args = ['restore', backup, '--yes', '--force', '--database', store];
      await runAndKill(args, folder, () => has(folder, `${basename(store)}.restore-`), wait);
      if (existsSync(store)) {
        const { code, stdout } = await runCli(['apikey', 'log', '--verify', '--database', store]);
        assert.equal(code, 0, stdout);
      }
      const { code, stderr } = await runCli(args);
      assert.equal(code, 0, stderr);
      assert.equal((await namesIn(store)).length, 500);
    });
  }
});

async function allNames(database: string): Promise<string[]> {
  return withKeys({ database }, async (keys) => {
    const names = [];
    for await (const { keys: page } of keys.feature(Transfer).export({ withDigests: false }))
      names.push(...page.map(({ name }) => name));
    return names;
  });
}
