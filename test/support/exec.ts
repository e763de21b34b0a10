import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { createInterface } from 'node:readline';
import { type Finished, finished, startCli } from './process.ts';
import { keysIn } from './stored.ts';
import { until } from './until.ts';

/** A shell command that reports to `startExec`; commands must begin with it. */
export const SAY_WHO = 'echo "$$ $API_KEY"';

const started = new Set<ChildProcess>();

/** Arguments that run a command with a key of a role, plus more flags. */
export function execArgs(command: readonly string[], flags: readonly string[] = []): string[] {
  return ['apikey', 'exec', '--roles', 'VIEWER', ...flags, '--', ...command];
}

/** `apikey exec` and its running command. */
export interface RunningExec {
  /** The process of `apikey exec`. */
  process: ChildProcess & { pid: number };
  /** The command's process id. */
  pid: number;
  secret: string;
  /** The next line of output of the command. */
  line(): Promise<string>;
  ended: Promise<Finished>;
}

/**
 * Starts `apikey exec` in a new session, so that no terminal signals all its processes, and waits until its command has
 * printed its process id and its secret.
 */
export async function startExec(
  database: string,
  command: readonly string[],
  options: SpawnOptions & { flags?: string[] } = {},
) {
  const { flags = [], ...spawning } = options;
  const process = startCli(execArgs(command, flags), {
    env: { SVC_API_DATABASE: database },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
    ...spawning,
  });
  started.add(process);
  const ended = finished(process).finally(() => started.delete(process));
  const lines = createInterface({ input: process.stdout! })[Symbol.asyncIterator]();
  const line = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`The command has ended: ${(await ended).stderr}`);
    return value;
  };
  const [pid, secret = ''] = (await line()).split(' ');
  return { process, pid: Number(pid), secret, line, ended } as RunningExec;
}

/** Ends programs that a failed test left running. */
export function endExecs(): void {
  for (const { pid } of started) {
    try {
      process.kill(-pid!, 'SIGKILL');
    } catch {
      // It has already ended.
    }
  }
}

export function noKeysIn(database: string): Promise<void> {
  return until(async () => (await keysIn(database)).length === 0);
}
