import type { SpawnOptions } from 'node:child_process';
import assert from 'node:assert/strict';
import { withKeys } from '../../src/cli/with-keys.ts';
import type { NewKey } from '../../src/keys/key/key-change.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { runCliHere, type Surroundings } from './cli-here.ts';
import { isRemote } from './dialects.ts';
import { type Finished, runCli } from './process.ts';
import { asOperator, remoteStore } from './remote.ts';
import { makeStore, tempStore } from './temp.ts';

/** The form of a secret; its public id is the first group. */
export const SECRET = /^svc_([0-9A-Za-z]{12})_[0-9A-Za-z]{49}$/;
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export interface CreatedKey {
  key: string;
  name: string;
  id: string;
}

export interface TestCli {
  /** The path of its store. Creating the first key makes the file. */
  database: string;
  /** Runs a command of the built CLI in this process: see `runCliHere`. */
  run(args: readonly string[], surroundings?: Surroundings): Promise<Finished>;
  /** Runs the built CLI in a process of its own. */
  runProcess(args: readonly string[], options?: SpawnOptions): Promise<Finished>;
  /** Creates a key, and fails if that fails. */
  create(name: string, ...args: string[]): Promise<CreatedKey>;
  /** Creates a key without starting a process, as set-up for a test. Its role is VIEWER unless grants are given. */
  given(name: string, fields?: Partial<NewKey>): Promise<CreatedKey>;
}

/** True if a command works on a store only. */
function needsStore([, verb = '', ...args]: readonly string[]): boolean {
  const store = ['export', 'import', 'scan', 'verify'];
  const isOfLog = verb === 'log' && ['--verify', '--prune'].some((flag) => args.includes(flag));
  return store.includes(verb) || isOfLog || args.includes('--detach');
}

/** The built CLI with a store of its own. */
export function testCli(database = tempStore()): TestCli {
  const withStore = (env?: NodeJS.ProcessEnv) => ({ SVC_API_DATABASE: database, ...env });
  const run: TestCli['run'] = async (args, { env, ...others } = {}) => {
    if (!isRemote() || needsStore(args)) return runCliHere(args, { ...others, env: withStore(env) });
    const server = await remoteStore(database);
    const place = { SVC_API_SERVER: server.url, SVC_API_KEY: server.key };
    return asOperator(await runCliHere(args, { ...others, env: { ...place, ...env } }), server);
  };
  return {
    database,
    run,
    runProcess: (args, { env, ...options } = {}) => runCli(args, { ...options, env: withStore(env) }),
    async create(name, ...args) {
      const grants = args.includes('--permissions') ? [] : ['--roles', 'VIEWER'];
      const { code, stdout, stderr } = await run(['apikey', '--create', '--name', name, ...grants, ...args, '--json']);
      assert.equal(code, 0, stderr || stdout);
      return JSON.parse(stdout) as CreatedKey;
    },
    async given(name, fields = {}) {
      await makeStore(database);
      // Opened as by a command: a server writes in a thread, which takes long to start.
      const { key: secret, apiKey: key } = await withKeys({ database }, (keys) =>
        keys.create({ name, ...(!fields.permissions && { roles: ['VIEWER'] }), ...fields }, OPERATOR),
      );
      return { key: secret, name: key.name, id: key.id };
    },
  };
}
