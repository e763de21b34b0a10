// For tests that need a separate process: another user, umask or limit, or one to kill.
import { once } from 'node:events';
import { readdirSync, statSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isKeysError } from '../../src/keys/basics/errors.ts';
import { OPERATOR, principalOf } from '../../src/keys/authorization/principal.ts';
import { openStore } from '../../src/store/open.ts';
import { authenticate, openTestKeys, type TestKeys } from './keys.ts';
import { STORES } from './features.ts';

const [, , task = '', database = '', ...rest] = process.argv;
const tasks: Record<string, () => Promise<unknown>> = { write, modes, churn, change, reopen, hold };

try {
  report(await tasks[task]!());
} catch (error) {
  report(isKeysError(error) ? { code: error.code, message: error.message } : { error: String(error) });
}

function report(value: unknown): void {
  writeSync(1, `${JSON.stringify(value)}\n`);
}

async function write(): Promise<object> {
  const { keys, store } = await openTestKeys({ asServer: true, database });
  for (const name of rest) await keys.create({ name, roles: ['GUEST'] }, OPERATOR);
  await store.close();
  return { written: rest };
}

/** Opens, writes and closes the store, many times. The last process to close it removes its side files. */
async function reopen(): Promise<object> {
  for (let round = 0; round < Number(rest[0]); round += 1) {
    const store = await openStore({ database, busyTimeoutMs: 25 }, { features: STORES });
    await store.repository.write(async () => {});
    await store.close();
  }
  return { reopened: Number(rest[0]) };
}

/** Keeps the store open until `close`, and lists or creates keys on request. */
async function hold(): Promise<object> {
  const { keys, store } = await openTestKeys({ asServer: rest[0] === 'server', database });
  process.send!([]);
  for (;;) {
    const [message] = (await once(process, 'message')) as [{ create?: string; close?: true }];
    if (message.close) break;
    try {
      if (message.create !== undefined) await keys.create({ name: message.create, roles: ['GUEST'] }, OPERATOR);
      process.send!((await keys.list({}, OPERATOR)).keys.map(({ name }) => name).toSorted());
    } catch (error) {
      process.send!(String((error as Error).message));
    }
  }
  await store.close();
  process.disconnect();
  return {};
}

/** The file modes of everything created below a folder while the store is open. */
async function modes(): Promise<object> {
  process.umask(Number.parseInt(rest[0]!, 8));
  const { keys, store } = await openTestKeys({
    asServer: true,
    database: join(database, 'new', 'folder', 'keys.sqlite'),
  });
  await keys.create({ name: 'A', roles: ['GUEST'] }, OPERATOR);
  const paths = [join(database, 'new'), dirname(store.location), ...files(dirname(store.location))];
  const found = paths.map((path) => [basename(path), (statSync(path).mode & 0o7777).toString(8)]);
  await store.close();
  return Object.fromEntries(found) as object;
}

function files(folder: string): string[] {
  return readdirSync(folder).map((name) => join(folder, name));
}

/** Cycles a store through four states, starting at the given one, and reports each step until killed. */
async function churn(): Promise<never> {
  const { keys } = await openTestKeys({ asServer: true, database });
  const steps = [createParent, createChild, overwriteParent, deleteParent];
  for (let index = Number(rest[0]); ; index += 1) {
    const step = steps[index % steps.length]!;
    await step(keys);
    report(step.name);
  }
}

/** Changes its own keys and two that other processes also change, and counts changes by action. */
async function change(): Promise<object> {
  const [own = '', count, secret = ''] = rest;
  // This test is about lost changes, not the wait, so a busy machine must not matter.
  const { keys, store } = await openTestKeys({ asServer: true, database, lockWaitMs: 600_000 });
  const idOf = async (name: string) => (await keys.findByName(name, OPERATOR))!.id;
  const [shared, turning] = [await idOf('Shared'), await idOf('Turning')];
  const steps: Record<string, () => Promise<unknown>> = {
    CREATE: () => keys.create({ name: own, roles: ['GUEST'] }, OPERATOR),
    UPDATE: async () => keys.update(shared, { description: `${own} ${Object.values(made).join(' ')}` }, OPERATOR),
    ROTATE: () => keys.rotate(turning, {}, OPERATOR),
    DISABLE: async () => keys.setEnabled(await idOf(own), false, OPERATOR),
    DELETE: async () => keys.delete([await idOf(own)], OPERATOR),
  };
  const made: Record<string, number> = {
    ROTATE_FINISH: 0,
    ...Object.fromEntries(Object.keys(steps).map((action) => [action, 0])),
  };
  for (let index = 0; index < Number(count); index += 1) {
    const action = Object.keys(steps)[index % 5]!;
    const done = await (action === 'ROTATE' ? turn() : steps[action]!().then(() => action));
    made[done]! += 1;
    await authenticate(keys, secret);
    if (index % 50 === 0) await keys.finishActivity();
  }
  await keys.finishActivity();
  await store.close();
  return made;

  /** Rotates, or finishes the rotation of another process. */
  async function turn(): Promise<string> {
    for (;;) {
      try {
        await steps['ROTATE']!();
        return 'ROTATE';
      } catch (error) {
        if (!isKeysError(error) || error.code !== 'ROTATION_IN_PROGRESS') throw error;
      }
      try {
        await keys.finishRotation(turning, OPERATOR);
        return 'ROTATE_FINISH';
      } catch (error) {
        if (!isKeysError(error) || error.code !== 'ROTATION_NONE') throw error;
      }
    }
  }
}

type Keys = TestKeys['keys'];

async function createParent(keys: Keys): Promise<void> {
  await keys.create({ name: 'Parent', roles: ['ADMIN'] }, OPERATOR);
}

async function createChild(keys: Keys): Promise<void> {
  const key = await keys.findByName('Parent', OPERATOR);
  await keys.create({ name: 'Child', roles: ['GUEST'] }, principalOf({ keys: [key!], isComplete: true }, keys.catalog));
}

async function overwriteParent(keys: Keys): Promise<void> {
  await keys.create({ name: 'Parent', roles: ['VIEWER'], overwrite: true }, OPERATOR);
}

async function deleteParent(keys: Keys): Promise<void> {
  const key = await keys.findByName('Parent', OPERATOR);
  await keys.delete([key!.id], OPERATOR);
}
