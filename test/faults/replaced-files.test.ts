import assert from 'node:assert/strict';
import { copyFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { readDirectly } from '../support/direct.ts';
import { openTestKeys } from '../support/keys.ts';
import { runCli } from '../support/process.ts';
import { type ServeProcess, startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { tempStore } from '../support/temp.ts';

interface Place {
  path: string;
  backup: string;
}

interface Way {
  what: string;
  run: (place: Place) => void | Promise<void>;
  /** Whether the content is that of the backup afterwards. */
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

/** The store has just these keys, a log that is whole, and a sound file. */
async function assertHolds(path: string, names: ReadonlySet<string>): Promise<void> {
  const { keys, store } = await openTestKeys({ database: path });
  const listed = (await keys.list({}, OPERATOR)).keys.map(({ name }) => name);
  assert.deepEqual(listed.toSorted(), [...names].toSorted());
  assert.ok('entries' in (await keys.verifyAuditLog()));
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
    const { keys, store } = await openTestKeys();
    kept = (await keys.create({ name: 'Kept', roles: ['ADMIN'] }, OPERATOR)).secret;
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
        // While another program still has what was there, a command may say so and do nothing: "try again".
        const retried = async (args: string[]) => {
          let result = await runCli(args);
          for (let count = 0; count < 5 && result.stdout.includes('STORE_CORRUPT'); count += 1)
            result = await runCli(args);
          return result;
        };
        const [create, remove] = [
          async () => {
            const { code, stdout } = await retried(argsFor(path, 'create', '--name', 'After', '--roles', 'GUEST'));
            assert.equal(code, 0, stdout);
            expected.add('After');
            return (JSON.parse(stdout) as { key: string }).key;
          },
          async () => {
            const { code, stdout } = await retried(argsFor(path, 'delete', '--name', 'Doomed'));
            assert.equal(code, 0, stdout);
            expected.delete('Doomed');
          },
        ];
        const mutate = async () => {
          const mutation = 'mutation { createApiKey(input: { name: "By the server", roles: [GUEST] }) { key } }';
          const { body } = await query(server.url, kept, mutation);
          const { key } = (body.data as { createApiKey: { key: string } | null }).createApiKey ?? {};
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
        await assertHolds(path, expected);
      });
  }

  it('is refused after it was killed and another file copied over its own, until its -wal file is removed', async () => {
    // A file that is only one change older is what the -wal file was made for.
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
