import { Config } from '@oclif/core/config';
import type { Terminal } from '../../src/cli/terminal.ts';
import { type Finished, ROOT } from './process.ts';

type Runnable = new (args: string[], config: Config) => { _run(): Promise<void> };

let config: Promise<Config> | undefined;
let running: Promise<unknown> = Promise.resolve();

/**
 * Runs a command of the built CLI in this process, one at a time and without a terminal. Only starting a process is
 * left out, which is the same on every database and takes longer than the rest.
 */
export function runCliHere(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> {
  const result = running.then(() => run(args, env));
  running = result.catch(() => {});
  return result;
}

async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Finished> {
  const loaded = await (config ??= Config.load(ROOT));
  const verb = loaded.findCommand(args.slice(0, 2).join(':'));
  const Command = (await (verb ?? loaded.findCommand(args[0]!, { must: true })).load()) as unknown as Runnable;
  const written = { stdout: '', stderr: '' };
  const terminal: Terminal = {
    canPrompt: false,
    isInputTerminal: false,
    isTerminal: false,
    out: (text) => void (written.stdout += text),
    deliver: (text) => void (written.stdout += text),
    note: (text) => void (written.stderr += `${text}\n`),
  };
  const before = { code: process.exitCode, env: { ...process.env } };
  Object.assign(process.env, env);
  process.exitCode = 0;
  try {
    const command = Object.assign(new Command(args.slice(verb ? 2 : 1), loaded), { terminal });
    await command._run();
    return { ...written, code: Number(process.exitCode), signal: null };
  } finally {
    process.exitCode = before.code;
    process.env = before.env;
  }
}
