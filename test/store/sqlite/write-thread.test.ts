import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { openStore } from '../../../src/store/open.ts';
import { WriteThread } from '../../../src/store/sqlite/sqlite-driver.ts';
import { idOf, openTestKeys, storedKey } from '../../support/keys.ts';
import { cleanEnv, finished, ROOT } from '../../support/process.ts';
import { migratedStore } from '../../support/temp.ts';

/** The next thread that this process starts. */
async function nextWorker(): Promise<Worker> {
  const [worker] = (await once(process, 'worker')) as [Worker];
  return worker;
}

/** A program that writes and does not close its store. */
const PROGRAM = `
  import { openKeys } from ${JSON.stringify(join(ROOT, 'src/index.ts'))};
  const keys = await openKeys({ database: process.argv[1] });
  const { apiKey } = await keys.create({ name: 'CI', roles: ['GUEST'] }, { actor: 'operator' });
  process.stdout.write(apiKey.name);
`;

describe("the thread for a server's writes", () => {
  it('fails the change that it dies of, which is rolled back, and is started again by the next one', async () => {
    const { keys, store } = await openTestKeys({ asServer: true });
    const started = nextWorker();
    const failing = store.repository.write(async (writer) => {
      await writer.insert([storedKey('lost')]);
      const terminated = (await started).terminate();
      await writer.findById(idOf('lost')).finally(() => terminated);
    });
    await assert.rejects(failing, { code: 'STORE_FAILED' });
    await keys.create({ name: 'Next', roles: ['GUEST'] }, OPERATOR);
    const names = (await keys.list({}, OPERATOR)).keys.map(({ name }) => name);
    assert.deepEqual(names, ['Next']);
    await store.close();
  });

  it('keeps a program alive while it writes, and no longer, whatever the options of the program', async () => {
    const database = await migratedStore();
    const args = ['--input-type=module', '--eval', PROGRAM, database];
    const program = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env: cleanEnv() });
    const { code, stdout } = await finished(program);
    assert.deepEqual([code, stdout], [0, 'CI']);
  });

  it('is not started by a program that waits in the driver, as a command does', async () => {
    let isStarted = false;
    const start = () => void (isStarted = true);
    process.once('worker', start);
    const store = await openStore({ database: await migratedStore(), busyTimeoutMs: 25 });
    await store.repository.write((writer) => writer.insert([storedKey('key')]));
    await store.close();
    process.removeListener('worker', start);
    assert.equal(isStarted, false);
  });

  it('ends once it has had nothing to do for a while, but in no transaction, and the next statement starts another', async () => {
    const thread = new WriteThread(await migratedStore(), [], { idleMs: 1 });
    const started = nextWorker();
    assert.equal(await thread.start(), true);
    await thread.run('begin immediate', []);
    // A timer that was set earlier would fire earlier.
    await delay(1);
    await thread.run('select 1', []);
    assert.equal(thread.inTransaction, true);
    const ended = once(await started, 'exit');
    await thread.run('commit', []);
    await ended;
    assert.equal(await thread.start(), true);
    assert.deepEqual((await thread.run('select 1 as one', [])).rows, [{ one: 1 }]);
    thread.close();
  });

  it('makes the change that is being made when the store is closed', async () => {
    const { database, store } = await openTestKeys({ asServer: true });
    let closing: Promise<void> | undefined;
    await store.repository.write(async (writer) => {
      await writer.insert([storedKey('key')]);
      closing = store.close();
    });
    await closing;
    const again = await openTestKeys({ asServer: true, database });
    assert.ok(await again.store.repository.findById(idOf('key')));
    await again.store.close();
  });

  it('writes into no file that was put in the place of the store while it started', async () => {
    const [first, second] = [await openTestKeys({ asServer: true }), await openTestKeys()];
    await second.keys.create({ name: 'There', roles: ['GUEST'] }, OPERATOR);
    await second.store.close();
    const started = nextWorker();
    const creating = first.keys.create({ name: 'New', roles: ['GUEST'] }, OPERATOR);
    await started;
    renameSync(second.database, first.database);
    await creating;
    const names = (await first.keys.list({}, OPERATOR)).keys.map(({ name }) => name);
    assert.deepEqual(names.toSorted(), ['New', 'There']);
    await first.store.close();
  });

  it('writes nothing of a file that is still read into one that was put in its place meanwhile', async () => {
    const [first, second] = [await openTestKeys({ asServer: true }), await openTestKeys()];
    await second.store.close();
    const [reader, other] = [new Database(first.database), new Database(first.database)];
    reader.exec('begin; select * from used_tokens');
    other.exec("insert into audit_start values (1, 0, '')");
    const started = nextWorker();
    const creating = first.keys.create({ name: 'New', roles: ['GUEST'] }, OPERATOR);
    await started;
    renameSync(second.database, first.database);
    const bytes = readFileSync(first.database);
    await assert.rejects(creating, { code: 'STORE_REPLACED' });
    await first.store.close();
    assert.ok(readFileSync(first.database).equals(bytes));
    reader.close();
    other.close();
  });
});
