import assert from 'node:assert/strict';
import { once } from 'node:events';
import Database from 'better-sqlite3';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { openTestKeys } from '../support/keys.ts';
import { finished, startCli } from '../support/process.ts';
import { startStoreChild } from '../support/store-process.ts';
import { tempStore } from '../support/temp.ts';

/** A store's keys and roles. Fails if the store is damaged. */
async function stateOf(database: string): Promise<string> {
  const { keys, store } = await openTestKeys({ database });
  const page = await keys.list({}, OPERATOR);
  await store.close();
  const file = new Database(database, { readonly: true });
  assert.equal(file.pragma('integrity_check', { simple: true }), 'ok');
  assert.deepEqual(file.pragma('foreign_key_check'), []);
  file.close();
  return page.keys
    .map(({ name, roles }) => `${name} ${roles.join()}`)
    .toSorted()
    .join('; ');
}

describe('a process that is killed while it writes', () => {
  /** After each step of `churn`. */
  const states = ['', 'Parent ADMIN', 'Child GUEST; Parent ADMIN', 'Parent VIEWER'];
  const rounds = 16;

  it(`leaves the state before or after its step, in ${rounds} rounds`, async () => {
    const database = tempStore();
    let step = 0;
    for (let round = 0; round < rounds; round += 1) {
      const child = startStoreChild(['churn', database, String(step)]);
      const ended = finished(child);
      let reported = 0;
      // The moments cover all steps, and fractions of a millisecond within them.
      const last = 1 + ((round * 7) % 16);
      child.stdout!.on('data', (text: string) => {
        reported += text.split('\n').length - 1;
        if (reported >= last) setTimeout(() => child.kill('SIGKILL'), (round * 0.37) % 3);
      });
      const { stdout, signal } = await ended;
      assert.equal(signal, 'SIGKILL');
      const done = step + stdout.split('\n').length - 1;
      const state = await stateOf(database);
      assert.ok(
        state === states[done % 4] || state === states[(done + 1) % 4],
        `"${state}" after ${stdout.split('\n').at(-2)}`,
      );
      step = states.indexOf(state);
    }
  });

  it('leaves a store that the next process completes, when it is killed while creating it', async () => {
    for (let round = 0; round < 8; round += 1) {
      const database = tempStore();
      const child = startStoreChild(['write', database, 'CI']);
      await once(child, 'spawn');
      // Loading takes some 150 ms, creating the store 10.
      const timer = setTimeout(() => child.kill('SIGKILL'), 100 + round * 15);
      await finished(child);
      clearTimeout(timer);
      assert.match(await stateOf(database), /^(CI GUEST)?$/);
    }
  });
});

describe('a command that is killed', () => {
  const name = ['--name', 'CI'];
  const commands = {
    create: { args: ['--create', ...name, '--roles', 'GUEST'], states: ['', 'CI GUEST'] },
    overwrite: { args: ['--create', ...name, '--roles', 'VIEWER', '--overwrite'], states: ['CI GUEST', 'CI VIEWER'] },
    delete: { args: ['--delete', ...name], states: ['CI VIEWER', ''] },
  };

  it('has done its work or nothing of it, at 8 moments of each command', async () => {
    const database = tempStore();
    const run = async ({ args, states: [, after] }: (typeof commands)['create'], delay?: number) => {
      const started = performance.now();
      const child = startCli(['apikey', ...args, '--database', database]);
      const timer = delay === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), delay);
      const { code, signal } = await finished(child);
      clearTimeout(timer);
      assert.ok(code === 0 || (timer && signal === 'SIGKILL'));
      if (code === 0) assert.equal(await stateOf(database), after);
      return performance.now() - started;
    };
    for (const command of Object.values(commands)) {
      // The duration of an undisturbed run, after which everything is undone.
      const [before, after] = command.states;
      const duration = await run(command);
      await restore(before!);
      for (let moment = 1; moment <= 8; moment += 1) {
        // The first half is for loading modules; the moments are spread over the second.
        await run(command, duration * (0.4 + moment * 0.07));
        const state = await stateOf(database);
        assert.ok(state === before || state === after, `"${state}" after ${command.args.join(' ')}`);
        if (state === after) await restore(before!);
      }
      await restore(after!);
    }

    async function restore(state: string): Promise<void> {
      const { keys, store } = await openTestKeys({ database });
      const [keyName, role] = state.split(' ');
      if (role) await keys.create({ name: keyName!, roles: [role], overwrite: true }, OPERATOR);
      const key = role ? undefined : await keys.findByName('CI', OPERATOR);
      if (key) await keys.delete([key.id], OPERATOR);
      await store.close();
    }
  });
});
