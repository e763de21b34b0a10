import assert from 'node:assert/strict';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { newestSchema } from '../../../src/store/migrations.ts';
import { openStore } from '../../../src/store/open.ts';
import { authenticate, countKeys, openTestKeys, storedKey } from '../../support/keys.ts';
import { AS_NOBODY, runStoreChild } from '../../support/store-process.ts';
import { tempFolder, tempStore } from '../../support/temp.ts';

describe("the store's files", () => {
  for (const umask of ['0', '777', '22']) {
    it(`have mode 0600 and their folders 0700 under the umask ${umask}, while the store is open`, async () => {
      const folder = tempFolder();
      chmodSync(folder, 0o1777);
      assert.deepEqual(await runStoreChild(['modes', folder, umask], AS_NOBODY), {
        new: '700',
        folder: '700',
        'keys.sqlite': '600',
        'keys.sqlite-reserve': '600',
        'keys.sqlite-wal': '600',
        'keys.sqlite-shm': '600',
      });
    });
  }

  it('hold no secret, open or closed', async () => {
    const { keys, store } = await openTestKeys({ asServer: true });
    const created = await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const { key: secret, apiKey: key } = await keys.create({ name: 'CI', roles: ['ADMIN'], overwrite: true }, OPERATOR);
    const folder = dirname(store.location);
    const bytes = () => Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))));
    const open = bytes();
    assert.deepEqual(readdirSync(folder).toSorted(), [
      'keys.sqlite',
      'keys.sqlite-reserve',
      'keys.sqlite-shm',
      'keys.sqlite-wal',
    ]);
    await store.close();
    const closed = bytes();
    for (const content of [open, closed]) {
      assert.ok(content.includes(key.publicId), 'the search finds what is there');
      for (const text of [secret, created.key]) {
        for (const part of [text, text.slice(17), text.slice(17, 60), text.slice(-16)])
          assert.ok(!content.includes(part));
      }
    }
    assert.deepEqual(readdirSync(folder), ['keys.sqlite', 'keys.sqlite-reserve']);
  });

  it('are a WAL database that is marked as a key store', async () => {
    const store = await openStore({ database: tempStore() });
    const file = new Database(store.location, { readonly: true });
    const pragma = (name: string) => file.pragma(name, { simple: true });
    assert.equal(pragma('journal_mode'), 'wal');
    assert.equal(pragma('application_id'), 0x7376636b);
    assert.equal(pragma('user_version'), newestSchema());
    file.close();
    await store.close();
  });

  it('let a group read an existing one that the group may read, and close one that all may read', async () => {
    for (const [mode, expected] of [
      [0o640, 0o640],
      [0o644, 0o600],
    ] as const) {
      const path = tempStore();
      writeFileSync(path, '');
      chmodSync(path, mode);
      const store = await openStore({ database: path });
      for (const file of ['', '-wal', '-shm']) assert.equal(statSync(path + file).mode & 0o777, expected);
      await store.close();
    }
  });
});

describe('a store', () => {
  it('knows whether it was just created', async () => {
    const path = tempStore();
    const first = await openStore({ database: path });
    const second = await openStore({ database: path });
    assert.deepEqual([first.created, second.created], [true, false]);
    await first.close();
    await second.close();
  });

  it('may start from a file of 0 bytes', async () => {
    const path = tempStore();
    writeFileSync(path, '');
    const { keys, store } = await openTestKeys({ asServer: true, database: path });
    await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    await store.close();
    assert.equal(store.created, false);
  });

  it('keeps its keys when it is closed and opened again', async () => {
    const first = await openTestKeys({ asServer: true });
    const { key: secret, apiKey: key } = await first.keys.create(
      { name: 'CI', description: 'x', roles: ['GUEST'] },
      OPERATOR,
    );
    await first.store.close();
    const second = await openTestKeys({ asServer: true, database: first.store.location });
    const result = await authenticate(second.keys, secret);
    assert.deepEqual('principal' in result && result.principal.apiKey, key);
    await second.store.close();
  });

  it('refuses a key whose creator is not there', async () => {
    const { store } = await openTestKeys({ asServer: true });
    const insert = store.repository.write((writer) => writer.insert([storedKey('a', { createdBy: 'nobody' })]));
    await assert.rejects(
      insert,
      (error: Error) => (error.cause as { code?: string }).code === 'SQLITE_CONSTRAINT_FOREIGNKEY',
    );
    assert.equal(await countKeys(store.repository), 0);
    await store.close();
  });

  it('rolls back a transaction whose work throws', async () => {
    const { keys, store } = await openTestKeys({ asServer: true });
    const { apiKey: key } = await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const failing = store.repository.write(async (writer) => {
      await writer.delete([key.id]);
      throw new Error('Stop');
    });
    await assert.rejects(failing);
    assert.deepEqual(await store.repository.findById(key.id), key);
    await store.close();
  });
});
