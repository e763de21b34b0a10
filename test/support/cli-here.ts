import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { Config } from '@oclif/core/config';
import { ownOptions } from '../../src/cli/own-program.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { cleanEnv, type Finished } from './process.ts';

type Runnable = new (args: string[], config: Config) => { _run(): Promise<unknown> };

/** The environment in which a command runs. */
export interface Surroundings {
  env?: NodeJS.ProcessEnv;
  /** The content of stdin; nothing by default. */
  input?: string | Uint8Array;
  /** Default: the working folder of the tests. */
  cwd?: string;
}

let config: Promise<Config> | undefined;

/** The oclif configuration of our own program. Showing help changes it. */
export async function ownConfig(): Promise<Config> {
  return Config.load(await ownOptions());
}

/** The commands of our own program, by id. */
export async function ownCommands(): Promise<Record<string, Config['commands'][number]>> {
  const { commands } = await ownConfig();
  const ours = commands.filter(({ id, aliases, pluginName }) => pluginName === 'svc-api' && !aliases.includes(id));
  return Object.fromEntries(ours.map((command) => [command.id, command]));
}

let running: Promise<unknown> = Promise.resolve();

/**
 * Runs a command of the built CLI in this process, one at a time and without a terminal, which saves the start of a
 * process. Tests of streams, signals, the user, the log or a server need `runCli`.
 */
export function runCliHere(args: readonly string[], surroundings: Surroundings = {}): Promise<Finished> {
  return alone(() => within(surroundings, () => run(args)));
}

/** Runs one task at a time, because each changes the state of the process. */
export function alone<Result>(work: () => Promise<Result>): Promise<Result> {
  const result = running.then(work);
  running = result.catch(() => {});
  return result;
}

async function run(args: readonly string[]): Promise<Finished> {
  const loaded = await (config ??= ownConfig());
  const length = [3, 2, 1].find((count) => loaded.findCommand(args.slice(0, count).join(':'))) ?? 1;
  const found = loaded.findCommand(args.slice(0, length).join(':'), { must: true });
  const Command = (await found.load()) as unknown as Runnable;
  const written = { stdout: '', stderr: '' };
  const terminal: Terminal = {
    canPrompt: false,
    isInputTerminal: false,
    isTerminal: false,
    showsUnicode: true,
    canRedraw: false,
    errorColumns: undefined,
    columns: 80,
    out: async (text) => void (written.stdout += text),
    deliver: async (text) => void (written.stdout += text),
    note: async (text) => void (written.stderr += `${text}\n`),
    status: () => {},
    stopWaiting: () => {},
  };
  const command = Object.assign(new Command(args.slice(length), loaded), { terminal });
  await command._run().catch((error: unknown) => {
    if (!(error instanceof Error && 'oclif' in error)) throw error;
    process.exitCode = (error.oclif as { exit: number }).exit;
  });
  return { ...written, code: Number(process.exitCode), signal: null };
}

/** Changes the state of this process while `work` runs. */
export async function within<Result>(
  { env, input = '', cwd }: Surroundings,
  work: () => Promise<Result>,
): Promise<Result> {
  const own = Object.getOwnPropertyDescriptors(process);
  const before = { code: process.exitCode, env: { ...process.env }, cwd: process.cwd() };
  try {
    replaceEnv(cleanEnv(env));
    Object.defineProperty(process, 'stdin', { configurable: true, value: Readable.from([Buffer.from(input)]) });
    if (cwd !== undefined) process.chdir(cwd);
    process.exitCode = 0;
    process.exit = () => assert.fail('This command ends its process, and needs one of its own.');
    return await work();
  } finally {
    process.exitCode = before.code;
    process.chdir(before.cwd);
    Object.defineProperties(process, { stdin: own.stdin, exit: own.exit });
    replaceEnv(before.env);
  }
}

/** Changes the environment in place, because the home folder is read from it and not from the object. */
function replaceEnv(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name];
  for (const [name, value] of Object.entries(env)) if (value !== undefined) process.env[name] = value;
}
