import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readdirSync, readlinkSync, renameSync, rmSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { readDirectly } from '../support/direct.ts';
import { openTestKeys } from '../support/keys.ts';
import { runCli } from '../support/process.ts';
import { type ServeProcess, startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { startStoreChild } from '../support/store-process.ts';
import { tempStore } from '../support/temp.ts';
import { until } from '../support/until.ts';

interface Place {
  path: string;
  backup: string;
}

interface Way {
  what: string;
  run: (place: Place) => void | Promise<void>;
  /** True if the store then has the backup's content. */
  restores: boolean;
}

const remove = (path: string, ...suffixes: string[]) => {
  for (const suffix of suffixes) rmSync(path + suffix);
};

const WAYS: Way[] = [
  { what: 'cp over the file', run: ({ path, backup }) => copyFileSync(backup, path), restores: true },
  {
    what: 'cp over the file, and rm of -wal and -shm',
    run: ({ path, backup }) => {
      copyFileSync(backup, path);
      remove(path, '-wal', '-shm');
    },
    restores: true,
  },
  {
    what: 'rm of -wal and -shm, and cp over the file',
    run: ({ path, backup }) => {
      remove(path, '-wal', '-shm');
      copyFileSync(backup, path);
    },
    restores: true,
  },
  { what: 'rm of -wal', run: ({ path }) => remove(path, '-wal'), restores: false },
  { what: 'rm of -shm', run: ({ path }) => remove(path, '-shm'), restores: false },
  { what: 'rm of -wal and -shm', run: ({ path }) => remove(path, '-wal', '-shm'), restores: false },
  { what: 'mv over the file', run: ({ path, backup }) => renameSync(backup, path), restores: true },
  {
    what: 'mv of the file aside, and of another to its place',
    run: ({ path, backup }) => {
      renameSync(path, `${path}.aside`);
      renameSync(backup, path);
    },
    restores: true,
  },
];

/** Asserts that the store has these keys, and perhaps some of the unsure ones, an intact log and a sound file. */
async function assertHolds(path: string, names: ReadonlySet<string>, unsure = new Set<string>()): Promise<void> {
  const { keys, store } = await openTestKeys({ database: path });
  const listed = (await keys.list({}, OPERATOR)).keys.map(({ name }) => name).filter((name) => !unsure.has(name));
  assert.deepEqual(listed.toSorted(), [...names].toSorted());
  assert.ok('entries' in (await keys.audit.check()).verification);
  await store.close();
  const [{ integrity_check: sound }] = (await readDirectly(path, 'pragma integrity_check')) as [
    Record<string, unknown>,
  ];
  assert.equal(sound, 'ok');
}

const argsFor = (path: string, ...args: string[]) => ['apikey', ...args, '--json', '--database', path];

describe('a store under a running server', () => {
  let server: ServeProcess;
  let [path, backup] = ['', ''];
  let [kept, later] = ['', ''];

  beforeEach(async () => {
    const { keys, store } = await openTestKeys({ time: { now: Date.now() } });
    kept = (await keys.create({ name: 'Kept', roles: ['ADMIN'] }, OPERATOR)).key;
    await keys.create({ name: 'Doomed', roles: ['GUEST'] }, OPERATOR);
    await store.close();
    [path, backup] = [store.location, tempStore()];
    copyFileSync(path, backup);
    server = await startServe(path);
    const created = await runCli(argsFor(path, 'create', '--name', 'Later', '--roles', 'GUEST'));
    later = (JSON.parse(created.stdout) as { key: string }).key;
    assert.equal(await statusOf(kept), 200);
    assert.equal(await statusOf(later), 200);
  });
  afterEach(() => server.stop('SIGKILL'));

  const statusOf = async (secret: string) => (await query(server.url, secret, '{ me { name } }')).status;

  for (const { what, run, restores } of WAYS) {
    for (const first of ['a command', 'the server'])
      it(`loses nothing that is reported as done after ${what}, and ${first} writes first`, async () => {
        const expected = new Set(['Kept', 'Doomed', ...(restores ? [] : ['Later'])]);
        // While the server still has a moved file open, the outcome of a command can be uncertain.
        const unsure = new Set<string>();
        const isUnsure = ({ stdout }: { stdout: string }) =>
          what.startsWith('mv ') && stdout.includes('"STORE_REPLACED"') && stdout.includes('the change may be lost');
        const create = async (name = 'After'): Promise<string> => {
          const created = await runCli(argsFor(path, 'create', '--name', name, '--roles', 'GUEST'));
          if (isUnsure(created)) {
            unsure.add(name);
            return create(`${name} again`);
          }
          assert.equal(created.code, 0, created.stdout);
          expected.add(name);
          return (JSON.parse(created.stdout) as { key: string }).key;
        };
        const remove = async (isAgain = false): Promise<void> => {
          const removed = await runCli(argsFor(path, 'delete', '--name', 'Doomed'));
          if (isUnsure(removed)) return remove(true);
          if (!isAgain || !removed.stdout.includes('No API keys found')) assert.equal(removed.code, 0, removed.stdout);
          expected.delete('Doomed');
        };
        const mutate = async () => {
          const mutation = 'mutation { createApiKey(input: { name: "By the server", roles: [GUEST] }) { key } }';
          const { body } = await query(server.url, kept, mutation);
          const { key } = (body.data as { createApiKey: { key: string } | null } | undefined)?.createApiKey ?? {};
          assert.ok(key, JSON.stringify(body));
          expected.add('By the server');
          return key;
        };

        await run({ path, backup });
        const secrets = [];
        if (first === 'the server') secrets.push(await mutate());
        const [created] = await Promise.all([create(), remove()]);
        secrets.push(created);
        if (first !== 'the server') secrets.push(await mutate());
        for (const secret of secrets) assert.equal(await statusOf(secret), 200);
        assert.equal(await statusOf(later), restores ? 401 : 200);
        await server.stop();
        await assertHolds(path, expected, unsure);
      });
  }

  it('is refused after it was killed and another file copied over its own, until its -wal file is removed', async () => {
    // A -wal file still fits a file that is only one change older.
    await runCli(argsFor(path, 'disable', 'Later'));
    await server.stop('SIGKILL');
    assert.ok(statSync(`${path}-wal`).size > 0);
    copyFileSync(backup, path);
    const create = argsFor(path, 'create', '--name', 'After', '--roles', 'GUEST');
    const refused = JSON.parse((await runCli(create)).stdout) as { code: string; error: string };
    assert.equal(refused.code, 'STORE_REPLACED');
    assert.match(refused.error, /remove \S+-wal and \S+-shm/);
    remove(path, '-wal', '-shm');
    assert.equal((await runCli(create)).code, 0);
    server = await startServe(path);
    assert.equal(await statusOf(later), 401);
    assert.equal(await statusOf(kept), 200);
  });
});

describe('programs that have a store open while a file beside it is removed', () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  /**
   * Opens the store in another process.
   * @returns the process, and a function to send it a task, whose answer is all names
   */
  async function open(database: string, as: 'server' | 'command') {
    const child = startStoreChild(['hold', database, as], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    children.push(child);
    const [opened] = (await Promise.race([once(child, 'message'), once(child.stdout!, 'data')])) as unknown[];
    assert.deepEqual(opened, [], String(opened));
    const tell = async (message: { create?: string }): Promise<unknown> => {
      child.send(message);
      return ((await once(child, 'message')) as unknown[])[0];
    };
    const close = async () => {
      child.send({ close: true });
      await once(child, 'exit');
    };
    return { child, tell, close };
  }

  const filesOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  const linkOf = (path: string) => {
    try {
      return readlinkSync(path);
    } catch {
      return ''; // It was closed meanwhile.
    }
  };

  const made = async () => {
    const { keys, store } = await openTestKeys({ time: { now: Date.now() } });
    await keys.create({ name: 'Old', roles: ['GUEST'] }, OPERATOR);
    await store.close();
    return store.location;
  };

  for (const removed of [['-wal'], ['-shm'], ['-wal', '-shm']])
    it(`go on together, and with new ones, after rm of ${removed.join(' and ')}`, async () => {
      const path = await made();
      const server = await open(path, 'server');
      assert.deepEqual(await server.tell({ create: 'Server' }), ['Old', 'Server']);
      remove(path, ...removed);
      const first = await open(path, 'command');
      assert.deepEqual(await first.tell({}), ['Old', 'Server']);
      assert.deepEqual(await server.tell({}), ['Old', 'Server']);
      assert.deepEqual(await first.tell({ create: 'First' }), ['First', 'Old', 'Server']);
      assert.deepEqual(await server.tell({}), ['First', 'Old', 'Server']);
      // It must not depend on the check that runs once a second.
      server.child.kill('SIGSTOP');
      await first.close();
      const second = await open(path, 'command');
      const all = ['First', 'Old', 'Second', 'Server'];
      assert.deepEqual(await second.tell({ create: 'Second' }), all);
      server.child.kill('SIGCONT');
      assert.deepEqual(await server.tell({}), all);
      await second.close();
      assert.deepEqual(await server.tell({ create: 'Third' }), [...all, 'Third']);
      await server.close();
      await assertHolds(path, new Set([...all, 'Third']));
    });

  it('do not take a change along that is only in the new -wal file', async () => {
    const path = await made();
    const server = await open(path, 'server');
    assert.deepEqual(await server.tell({ create: 'Server' }), ['Old', 'Server']);
    server.child.kill('SIGSTOP'); // The check runs once a second.
    remove(path, '-wal', '-shm');
    const reader = new Database(path);
    reader.exec('begin');
    reader.prepare('select * from api_keys').all();
    const command = await open(path, 'command');
    assert.deepEqual(await command.tell({ create: 'New' }), ['New', 'Old', 'Server']);
    await command.close();
    reader.close();
    server.child.kill('SIGCONT');
    // The file itself was not changed, so only the check once a second finds that the files beside it are gone.
    await until(() => filesOf(server.child.pid!).every((file) => !file.endsWith('(deleted)')));
    assert.deepEqual(await server.tell({}), ['New', 'Old', 'Server']);
    await server.close();
    await assertHolds(path, new Set(['New', 'Old', 'Server']));
  });
});
