import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { sql } from 'kysely';
import { STEPS } from '../../src/keys/basics/steps.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { openTestKeys, storedKey, type TestKeys } from '../support/keys.ts';
import { withNextSchema } from '../support/next-schema.ts';
import { runStoreChild } from '../support/store-process.ts';
import { makeStore, tempStore } from '../support/temp.ts';

const namesIn = async ({ keys }: TestKeys) => (await keys.list({}, OPERATOR)).keys.map(({ name }) => name).toSorted();
const create = async ({ keys }: TestKeys, ...names: string[]) => {
  for (const name of names) await keys.create({ name, roles: ['GUEST'] }, OPERATOR);
};

describe('a store file that another is moved over', () => {
  let open: TestKeys;
  let backup: string;

  beforeEach(async () => {
    const restored = await openTestKeys({ asServer: true });
    await create(restored, 'Restored');
    await restored.store.close();
    backup = restored.store.location;
    open = await openTestKeys({ asServer: true });
    // These are only in the -wal file, which must not be applied to the new file.
    await create(open, 'Old 1', 'Old 2');
  });
  afterEach(() => open.store.close());

  it('is closed, and the other one opened', async () => {
    renameSync(backup, open.store.location);
    await yieldToEventLoop();
    assert.deepEqual(await namesIn(open), ['Restored']);
    await create(open, 'New');
    await open.store.close();
    const again = await openTestKeys({ asServer: true, database: open.store.location });
    assert.deepEqual(await namesIn(again), ['New', 'Restored']);
    await again.store.close();
  });

  it('is noticed over a store that was just made, or migrated, and not written since', async () => {
    const keys = Array.from({ length: 30 }, (_, index) => `Key ${index}`);
    const full = await openTestKeys({ asServer: true, database: backup });
    await create(full, ...keys);
    await full.store.close();
    const check = async (database: string) => {
      const made = await openTestKeys({ asServer: true, database });
      copyFileSync(backup, database);
      await yieldToEventLoop();
      const other = await openTestKeys({ asServer: true, database });
      for (const each of [made, other]) assert.deepEqual(await namesIn(each), [...keys, 'Restored'].toSorted());
      await made.store.close();
      await other.store.close();
      const file = new Database(database, { readonly: true });
      assert.equal(file.pragma('integrity_check', { simple: true }), 'ok');
      file.close();
    };
    await check(tempStore());
    const older = tempStore();
    await makeStore(older);
    await withNextSchema(
      async (db) => void (await sql`create table more (id text)`.execute(db)),
      () => check(older),
    );
  });

  it('leaves nothing behind when it is closed, though nothing was written', async () => {
    const again = await openTestKeys({ asServer: true, database: backup });
    assert.deepEqual(await namesIn(again), ['Restored']);
    await again.store.close();
    assert.deepEqual([existsSync(`${backup}-wal`), existsSync(`${backup}-shm`)], [false, false]);
  });

  it('is closed for all concurrent queries', async () => {
    renameSync(backup, open.store.location);
    await yieldToEventLoop();
    const asked = await Promise.all(Array.from({ length: 5 }, () => namesIn(open)));
    assert.deepEqual(
      asked,
      Array.from({ length: 5 }, () => ['Restored']),
    );
  });

  it('does not change the other one when it is closed without another query', async () => {
    renameSync(backup, open.store.location);
    await open.store.close();
    const again = await openTestKeys({ asServer: true, database: open.store.location });
    assert.deepEqual(await namesIn(again), ['Restored']);
    await again.store.close();
  });

  it('is left only when the last reader that keeps its changes out of it has gone', async () => {
    const reader = new Database(open.store.location, { readonly: true });
    reader.exec('begin; select * from api_keys');
    await create(open, 'Old 3');
    renameSync(backup, open.store.location);
    await yieldToEventLoop();
    await assert.rejects(namesIn(open), { code: 'STORE_REPLACED', message: /another program still reads the file/ });
    assert.equal(open.keys.authenticator.findVerified(''), undefined);
    reader.close();
    assert.deepEqual(await namesIn(open), ['Restored']);
  });

  for (const [way, replace] of [
    ['moved', renameSync],
    ['copied', copyFileSync],
  ] as const)
    it(`answers a query from the ${way} file while it writes into the one before, and repeats the change there`, async () => {
      const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const changing = open.store.repository.write(async (writer) => {
        await writer.insert([storedKey('new')]);
        begun.resolve();
        await released.promise;
      });
      await begun.promise;
      replace(backup, open.store.location);
      await yieldToEventLoop();
      const asked = namesIn(open);
      await yieldToEventLoop();
      released.resolve();
      assert.ok((await asked).includes('Restored'));
      await changing;
      assert.equal((await namesIn(open)).length, 2);
    });

  for (const [asked, ask] of [
    ['asked', namesIn],
    ['closed', ({ store }: TestKeys) => store.close()],
  ] as const)
    it(`keeps what another program is just writing into a backup that was copied over it when it is ${asked}`, async () => {
      const { location } = open.store;
      const walOf = () => statSync(`${location}-wal`, { throwIfNoEntry: false })?.ino;
      copyFileSync(location, backup);
      await create(open, 'Old 3');
      copyFileSync(backup, location);
      const wal = walOf();
      const other = new Database(location);
      other.exec("begin immediate; update api_keys set name = 'New 1' where name = 'Old 1'");
      other.prepare('update last_change set ids = ? || substr(ids, 1, 36)').run(randomUUID());
      const answered = ask(open);
      await yieldToEventLoop();
      assert.equal(walOf(), wal);
      other.exec('commit');
      await answered;
      assert.equal(walOf(), wal);
      other.close();
      const again = await openTestKeys({ database: location });
      assert.deepEqual(await namesIn(again), ['New 1', 'Old 2']);
      await again.store.close();
    });

  it('is opened anew by a program that was opening it when a server left it, since a backup was copied over it', async () => {
    const { location } = open.store;
    copyFileSync(location, backup);
    await create(open, 'Old 3');
    copyFileSync(backup, location);
    const leave = (step: unknown) => {
      if (!(step as { fields: { sql: string } }).fields.sql.includes('pragma_application_id')) return;
      STEPS.trace.unsubscribe(leave);
      open.store.repository.revision();
    };
    STEPS.trace.subscribe(leave);
    const other = await openTestKeys({ database: location });
    assert.equal(STEPS.trace.hasSubscribers, false);
    await create(other, 'New');
    assert.ok(statSync(`${location}-wal`).size > 0);
    assert.deepEqual(await namesIn(open), ['New', 'Old 1', 'Old 2']);
    await other.store.close();
  });

  it('is not said to have a change that another program has written into the file that was moved away', async () => {
    const { location } = open.store;
    await open.store.close();
    const first = await openTestKeys({ database: location });
    copyFileSync(location, backup);
    await create(first, 'Old 3');
    const old = new Database(location);
    const readLast = old.prepare('select ids from last_change').pluck();
    const last = readLast.get();
    renameSync(backup, location);
    const write = () => {
      if (readLast.get() === last) queueMicrotask(write);
      else old.pragma('wal_checkpoint');
    };
    const marked = (step: unknown) => {
      if (!(step as { fields: { sql: string } }).fields.sql.startsWith('update last_change')) return;
      STEPS.trace.unsubscribe(marked);
      write();
    };
    STEPS.trace.subscribe(marked);
    const other = await openTestKeys({ database: location });
    await assert.rejects(create(other, 'New'), { code: 'STORE_REPLACED' });
    old.close();
    await other.store.close();
    await first.store.close();
  });

  it('keeps all its keys where it was moved aside first', async () => {
    const aside = tempStore();
    renameSync(open.store.location, aside);
    renameSync(backup, open.store.location);
    await yieldToEventLoop();
    assert.deepEqual(await namesIn(open), ['Restored']);
    const old = await openTestKeys({ asServer: true, database: aside });
    assert.deepEqual(await namesIn(old), ['Old 1', 'Old 2']);
    await old.store.close();
  });

  it('gives an error where the other one is no store, and is opened again when it comes back', async () => {
    const { location } = open.store;
    const aside = tempStore();
    renameSync(location, aside);
    writeFileSync(location, 'No store at all. '.repeat(100));
    await yieldToEventLoop();
    await assert.rejects(namesIn(open), { code: 'STORE_CORRUPT' });
    assert.match(readFileSync(location, 'utf8'), /^No store at all/);
    renameSync(aside, location);
    await yieldToEventLoop();
    assert.deepEqual(await namesIn(open), ['Old 1', 'Old 2']);
  });
});

describe('a store file that is emptied', () => {
  const emptied: Readonly<Record<string, (path: string) => void>> = {
    'is truncated': (path) => truncateSync(path),
    'is truncated, and nothing is beside it': (path) => {
      truncateSync(path);
      for (const suffix of ['-wal', '-shm']) rmSync(path + suffix);
    },
    'has an empty one moved over it': (path) => {
      const empty = tempStore();
      writeFileSync(empty, '', { mode: 0o600 });
      renameSync(empty, path);
    },
    'is removed, and an empty one made': (path) => {
      for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix);
      writeFileSync(path, '', { mode: 0o600 });
    },
  };
  for (const [what, empty] of Object.entries(emptied))
    it(`gives an error and stays empty where it ${what}, until a store is put there`, async () => {
      const restored = await openTestKeys({ asServer: true });
      await create(restored, 'Restored');
      await restored.store.close();
      const open = await openTestKeys({ asServer: true });
      await create(open, 'Old');
      const { location } = open.store;
      empty(location);
      for (let times = 0; times < 2; times += 1) {
        await yieldToEventLoop();
        for (const attempt of [namesIn(open), open.keys.store.check(), create(open, 'New')])
          await assert.rejects(attempt, {
            code: 'STORE_UNAVAILABLE',
            message: `The key store ${location} is an empty file. Check the path.`,
          });
        assert.equal(statSync(location).size, 0);
      }
      renameSync(restored.store.location, location);
      await yieldToEventLoop();
      assert.deepEqual(await namesIn(open), ['Restored']);
      await create(open, 'New');
      await open.store.close();
    });
});

describe('a store file that is deleted', () => {
  it('gives an error, not old data, until another process makes a new one', async () => {
    const open = await openTestKeys({ asServer: true });
    await create(open, 'Old');
    rmSync(open.store.location);
    await yieldToEventLoop();
    for (const attempt of [namesIn(open), open.keys.store.check(), create(open, 'New')]) {
      await assert.rejects(attempt, {
        code: 'STORE_UNAVAILABLE',
        message: `The key store ${open.store.location} does not exist. Check the path.`,
      });
    }
    assert.equal(existsSync(open.store.location), false);
    assert.deepEqual(await runStoreChild(['write', open.store.location, 'Fresh']), { written: ['Fresh'] });
    assert.deepEqual(await namesIn(open), ['Fresh']);
    await open.store.close();
  });
});
