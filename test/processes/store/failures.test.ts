import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import type { ErrorCode } from '../../../src/keys/basics/errors.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { openTestKeys } from '../../support/keys.ts';
import { runCliHere } from '../../support/cli-here.ts';
import { type Finished, runCli } from '../../support/process.ts';
import { skipUnlessCI } from '../../support/skip.ts';
import { AS_NOBODY, runCliWithFileLimit, runStoreChild } from '../../support/store-process.ts';
import { tempFolder, tempStore } from '../../support/temp.ts';

/** A store with keys, closed. */
async function storeWithKeys(count = 1): Promise<string> {
  const { keys, store } = await openTestKeys({ asServer: true });
  for (let index = 0; index < count; index += 1)
    await keys.create({ name: `Key ${index}`, description: 'x'.repeat(1000), roles: ['GUEST'] }, OPERATOR);
  await store.close();
  return store.location;
}

/** A path where another file exists. */
function pathOf(make: (path: string) => void): string {
  const path = tempStore();
  make(path);
  return path;
}

function sqliteFile(path: string, script: string): void {
  const file = new Database(path);
  file.exec(script);
  file.close();
}

/** Other users have no access to root's home folder. */
const CLI_AS_NOBODY = { ...AS_NOBODY, env: { HOME: '/nonexistent' } };

const create = (database: string) => [
  'apikey',
  '--create',
  '--name',
  'New',
  '--roles',
  'GUEST',
  '--json',
  '--database',
  database,
];

function assertCliFailure({ stdout, stderr, code, signal }: Finished, expected: ErrorCode, message: RegExp): void {
  assert.deepEqual({ code, signal, stderr }, { code: 1, signal: null, stderr: '' });
  const answer = JSON.parse(stdout) as { error: string; code: string };
  assert.deepEqual(Object.keys(answer), ['error', 'code']);
  assert.equal(answer.code, expected);
  assert.match(answer.error, message);
}

interface Case {
  what: string;
  code: ErrorCode;
  message: RegExp;
  path: () => string | Promise<string>;
  /** True if the file must not be changed. */
  unchanged?: boolean;
}

const CASES: Case[] = [
  {
    what: 'an SQLite file of another program',
    code: 'STORE_FOREIGN',
    message: /is an SQLite file of another program, not a key store/,
    path: () => pathOf((path) => sqliteFile(path, 'create table notes (text); insert into notes values (1)')),
    unchanged: true,
  },
  {
    what: 'an SQLite file that another program has marked as its own',
    code: 'STORE_FOREIGN',
    message: /is an SQLite file of another program/,
    path: () => pathOf((path) => sqliteFile(path, 'pragma application_id = 7')),
    unchanged: true,
  },
  {
    what: 'an SQLite file without tables whose schema another program has numbered',
    code: 'STORE_FOREIGN',
    message: /is an SQLite file of another program/,
    path: () => pathOf((path) => sqliteFile(path, 'pragma user_version = 1')),
    unchanged: true,
  },
  {
    what: 'a store of a newer version',
    code: 'STORE_NEWER',
    message: /was made by a newer version of svc-api \(schema 99; this one knows \d+\)\. Update svc-api/,
    path: async () => {
      const path = await storeWithKeys();
      sqliteFile(path, 'pragma user_version = 99');
      return path;
    },
    unchanged: true,
  },
  {
    what: 'a text file',
    code: 'STORE_CORRUPT',
    message: /is not a key store, or is damaged/,
    path: () => pathOf((path) => writeFileSync(path, 'Dear diary,\n'.repeat(200))),
    unchanged: true,
  },
  {
    what: 'a text file of a few bytes',
    code: 'STORE_CORRUPT',
    message: /is not a key store, or is damaged/,
    path: () => pathOf((path) => writeFileSync(path, 'hello')),
    unchanged: true,
  },
  {
    what: 'a store whose pages are damaged',
    code: 'STORE_CORRUPT',
    message: /is damaged/,
    path: async () => {
      const path = await storeWithKeys();
      const file = openSync(path, 'r+');
      writeSync(file, Buffer.alloc(statSync(path).size - 4096, 0x5a), 0, undefined, 4096);
      closeSync(file);
      return path;
    },
    unchanged: true,
  },
  {
    what: 'a store that is cut',
    code: 'STORE_CORRUPT',
    message: /is damaged/,
    path: async () => {
      const whole = readFileSync(await storeWithKeys(3));
      return pathOf((path) => writeFileSync(path, whole.subarray(0, 8192)));
    },
  },
  {
    what: 'a folder',
    code: 'STORE_UNAVAILABLE',
    message: /is not a file/,
    path: () => pathOf((path) => mkdirSync(path)),
  },
  {
    what: 'a FIFO',
    code: 'STORE_UNAVAILABLE',
    message: /is not a file/,
    path: () => pathOf((path) => execFileSync('mkfifo', [path])),
  },
  { what: 'a device', code: 'STORE_UNAVAILABLE', message: /is not a file/, path: () => '/dev/null' },
  {
    what: 'a path through a file',
    code: 'STORE_UNAVAILABLE',
    message: /a part of its path is not a folder/,
    path: () =>
      join(
        pathOf((path) => writeFileSync(path, '')),
        'keys.sqlite',
      ),
  },
  {
    what: 'a link that leads nowhere',
    code: 'STORE_UNAVAILABLE',
    message: /does not exist/,
    path: () => pathOf((path) => symlinkSync(`${path}.gone`, path)),
  },
  {
    what: 'a name that is too long',
    code: 'STORE_UNAVAILABLE',
    message: /its path is too long/,
    path: () => join(tempFolder(), 'x'.repeat(300)),
  },
];

describe('opening as a store', () => {
  for (const { what, code, message, path: prepare, unchanged } of CASES) {
    it(`${what} is ${code}, also by the command line`, async () => {
      const path = await prepare();
      const before = unchanged && readFileSync(path);
      const files = before && readdirSync(dirname(path));
      const attempt = async () => {
        const { keys } = await openTestKeys({ asServer: true, database: path });
        await keys.list({}, OPERATOR);
      };
      await assert.rejects(attempt, (error: Error & { code: string }) => {
        assert.deepEqual([error.code, error.message.includes(path)], [code, true]);
        assert.match(error.message, message);
        return true;
      });
      assertCliFailure(await runCliHere(create(path)), code, message);
      if (before) {
        assert.ok(before.equals(readFileSync(path)));
        if (code !== 'STORE_CORRUPT') assert.deepEqual(readdirSync(dirname(path)), files);
      }
    });
  }
});

describe('a user without permission to', () => {
  /** A store in a folder that the user can enter, with these modes. */
  async function storeFor(folderMode: number, fileMode: number): Promise<string> {
    const path = tempStore();
    copyFileSync(await storeWithKeys(), path);
    chmodSync(path, fileMode);
    if (process.getuid?.() === 0) for (const each of [path, dirname(path)]) chownSync(each, 65_534, 65_534);
    chmodSync(dirname(path), folderMode);
    return path;
  }

  it('read the store gets STORE_UNAVAILABLE', async () => {
    const path = await storeFor(0o755, 0o000);
    const expected = /^The key store .* cannot be opened/;
    const { code, message } = await runStoreChild(['write', path, 'New'], AS_NOBODY);
    assert.equal(code, 'STORE_UNAVAILABLE');
    assert.match(String(message), expected);
    assertCliFailure(await runCli(create(path), CLI_AS_NOBODY), 'STORE_UNAVAILABLE', expected);
  });

  it('enter its folder gets STORE_UNAVAILABLE', async () => {
    const path = await storeFor(0o000, 0o600);
    const expected = /permission denied\..* which it owns\. Run chmod 700 /;
    const { code } = await runStoreChild(['write', path, 'New'], AS_NOBODY);
    assert.equal(code, 'STORE_UNAVAILABLE');
    assertCliFailure(await runCli(create(path), CLI_AS_NOBODY), 'STORE_UNAVAILABLE', expected);
  });

  it('make it in its folder gets STORE_UNAVAILABLE', async () => {
    const path = join(dirname(await storeFor(0o555, 0o600)), 'new', 'keys.sqlite');
    const { code } = await runStoreChild(['write', path, 'New'], AS_NOBODY);
    assert.equal(code, 'STORE_UNAVAILABLE');
    assertCliFailure(
      await runCli(create(path), CLI_AS_NOBODY),
      'STORE_UNAVAILABLE',
      /permission denied\..* which it owns\. Run chmod 700 /,
    );
  });

  it('write the file gets STORE_READONLY', async () => {
    const path = await storeFor(0o755, 0o400);
    const { code } = await runStoreChild(['write', path, 'New'], AS_NOBODY);
    assert.equal(code, 'STORE_READONLY');
    assertCliFailure(await runCli(create(path), CLI_AS_NOBODY), 'STORE_READONLY', /is read-only for this user/);
    const { stdout, code: found } = await runCli(['doctor', '--database', path], CLI_AS_NOBODY);
    assert.match(
      stdout,
      /^failure +ACCESS .*keys\.sqlite cannot be read and written by this user: its mode is 0400\.$/m,
    );
    assert.equal(found, 1);
  });

  it('write the file system gets STORE_READONLY, with the reason', async function () {
    const folder = tempFolder();
    const path = join(folder, 'keys.sqlite');
    copyFileSync(await storeWithKeys(), path);
    const mount = (...args: string[]) => spawnSync('mount', args).status === 0;
    if (!mount('--bind', folder, folder)) skipUnlessCI(this, 'a folder could not be mounted');
    try {
      assert.ok(mount('-o', 'remount,bind,ro', folder));
      for (const args of [
        create(path),
        create(join(folder, 'new.sqlite')),
        ['apikey', 'list', '--json', '--database', path],
      ])
        assertCliFailure(await runCli(args), 'STORE_READONLY', /is on a read-only file system\. Move it/);
    } finally {
      spawnSync('umount', [folder]);
    }
  });

  it('write the folder gets an error that explains it', async () => {
    const path = await storeFor(0o555, 0o600);
    const { code } = await runStoreChild(['write', path, 'New'], AS_NOBODY);
    assert.ok(code === 'STORE_READONLY' || code === 'STORE_UNAVAILABLE', String(code));
    assertCliFailure(await runCli(create(path), CLI_AS_NOBODY), code, /its folder/);
  });
});

describe('a store that cannot grow', () => {
  it('is STORE_FULL, and keeps its content', async () => {
    const path = await storeWithKeys(3);
    const before = readFileSync(path);
    assertCliFailure(
      await runCliWithFileLimit(8, create(path)),
      'STORE_FULL',
      /the disk is full or a limit is reached/,
    );
    const { keys, store } = await openTestKeys({ asServer: true, database: path });
    assert.equal((await keys.list({}, OPERATOR)).keys.length, 3);
    await store.close();
    assert.ok(before.equals(readFileSync(path)));
  });

  it('is STORE_FULL in the middle of a transaction, which is rolled back', async () => {
    const { keys, store } = await openTestKeys({ asServer: true });
    // While this process has the store open, all changes go to the -wal file, which grows to 45 KiB. The -shm file
    // needs 32.
    assertCliFailure(
      await runCliWithFileLimit(36, create(store.location)),
      'STORE_FULL',
      /the disk is full or a limit is reached/,
    );
    assert.equal((await keys.list({}, OPERATOR)).keys.length, 0);
    assert.equal((await runCliHere(create(store.location))).code, 0);
    assert.equal((await keys.list({}, OPERATOR)).keys.length, 1);
    await store.close();
  });

  for (const limit of [1, 8, 33]) {
    it(`is STORE_FULL too where it is new and may have ${limit} KiB, and can be used once it may have more`, async () => {
      const path = tempStore();
      assertCliFailure(
        await runCliWithFileLimit(limit, create(path)),
        'STORE_FULL',
        /the disk is full or a limit is reached/,
      );
      assert.equal((await runCliHere(create(path))).code, 0);
    });
  }
});
