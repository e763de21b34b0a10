import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { openStore } from '../../../src/store/open.ts';
import { authenticate, countKeys, openTestKeys } from '../../support/keys.ts';
import { runCliHere } from '../../support/cli-here.ts';
import { migratedStore, tempStore } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

/** Takes a store's write lock, like another program. */
function lock(path: string): { release: () => void } {
  const other = new Database(path);
  other.exec('begin immediate');
  return { release: () => void other.close() };
}

describe('a store that another process writes', () => {
  it('can be read meanwhile', async () => {
    const { keys, store } = await openTestKeys({ asServer: true });
    const { key: secret } = await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const { release } = lock(store.location);
    assert.ok('principal' in (await authenticate(keys, secret)));
    const second = await openTestKeys({ asServer: true, database: store.location });
    assert.equal((await second.keys.list({}, OPERATOR)).keys.length, 1);
    release();
    await second.store.close();
    await store.close();
  });

  it('is waited for', async () => {
    const { keys, store } = await openTestKeys({ asServer: true });
    const { release } = lock(store.location);
    let done = false;
    const creating = keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR).finally(() => (done = true));
    await yieldToEventLoop(); // The first attempt has failed by now.
    assert.equal(done, false);
    release();
    assert.equal((await creating).apiKey.name, 'CI');
    await store.close();
  });

  it('does not block readers while 100 writers wait for it', async () => {
    const { keys, store } = await openTestKeys({ asServer: true, lockWaitMs: 3_600_000 });
    const { apiKey: key, key: secret } = await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const read = async () => {
      const started = performance.now();
      for (let count = 0; count < 10_000; count += 1) {
        await yieldToEventLoop();
        assert.ok('principal' in (await authenticate(keys, secret)));
      }
      return performance.now() - started;
    };
    // A pause of the machine can spoil a round, so it can repeat. Each lasts longer than writers wait for a lock.
    await until(async () => {
      const alone = await read();
      const { release } = lock(store.location);
      const waiting = Array.from({ length: 100 }, (_, index) =>
        keys.update(key.id, { description: `${index}` }, OPERATOR),
      );
      const beside = await read();
      release();
      await Promise.all(waiting);
      return beside < 2 * alone;
    });
    await store.close();
  });

  it('is waited for when it is new', async () => {
    const path = tempStore();
    const { release } = lock(path);
    let done = false;
    const opening = openStore({ database: path }).finally(() => (done = true));
    await yieldToEventLoop();
    assert.equal(done, false);
    release();
    await (await opening).close();
  });

  it('is STORE_LOCKED past the wait, and nothing is changed', async () => {
    const database = await migratedStore();
    const [patient, hasty] = [
      await openStore({ database, lockWaitMs: 3_600_000 }),
      await openStore({ database, lockWaitMs: 100 }),
    ];
    const { release } = lock(database);
    const started = performance.now();
    const first = patient.repository.write((writer) => writer.delete(['x']));
    const second = hasty.repository.write((writer) => writer.delete(['x']));
    // The one with the longer timeout started first, and still waits.
    await assert.rejects(Promise.race([first, second]), {
      code: 'STORE_LOCKED',
      message: `The key store ${database} is locked by another process. Try again in a moment.`,
    });
    assert.ok(performance.now() - started >= 100);
    release();
    await first;
    await patient.close();
    await hasty.close();
  });

  it('is waited for by a change for longer than by a question, where a change may', async () => {
    const database = await migratedStore();
    const patient = await openStore({ database, lockWaitMs: 100, writeWaitMs: 3_600_000 });
    const hasty = await openStore({ database, lockWaitMs: 400 });
    const { release } = lock(database);
    const first = patient.repository.write((writer) => writer.delete(['x']));
    const second = hasty.repository.write((writer) => writer.delete(['x']));
    await assert.rejects(Promise.race([first.then(() => assert.fail('It did not wait.')), second]), {
      code: 'STORE_LOCKED',
      message: `The key store ${database} is locked by another process. Try again in a moment.`,
    });
    release();
    await first;
    await patient.close();
    await hasty.close();
  });

  it('is STORE_LOCKED past the wait when it is new', async () => {
    const path = tempStore();
    const { release } = lock(path);
    await assert.rejects(openStore({ database: path, lockWaitMs: 50 }), { code: 'STORE_LOCKED' });
    release();
  });

  it('is not waited for where waiting does not help', async () => {
    const path = tempStore();
    writeFileSync(path, 'No store at all.');
    await assert.rejects(openStore({ database: path, lockWaitMs: 3_600_000 }), { code: 'STORE_CORRUPT' });
  });

  it('lets no other write come between the reads and writes of a transaction', async () => {
    const store = await openStore({ database: tempStore() });
    const other = new Database(store.location, { timeout: 0 });
    await store.repository.write(async (writer) => {
      assert.equal(await writer.findByName('CI'), undefined);
      assert.throws(() => other.exec('begin immediate'), { code: 'SQLITE_BUSY' });
    });
    other.exec('begin immediate');
    other.close();
    await store.close();
  });

  it('ends a command with STORE_LOCKED', async () => {
    const store = await openStore({ database: tempStore() });
    const { release } = lock(store.location);
    const args = ['apikey', '--create', '--name', 'New', '--roles', 'GUEST', '--json', '--database', store.location];
    const { stdout, stderr, code } = await runCliHere(args);
    release();
    assert.deepEqual([code, stderr], [1, '']);
    assert.deepEqual(JSON.parse(stdout), {
      error: `The key store ${store.location} is locked by another process. Try again in a moment.`,
      code: 'STORE_LOCKED',
    });
    assert.equal(await countKeys(store.repository), 0);
    await store.close();
  });
});
