import { spawn } from 'node:child_process';
import { debugTimed } from '../../keys/steps.ts';
import { printable } from '../../keys/text.ts';
import { CliError, presentError } from '../errors.ts';
import { exitCodeOf } from '../signals.ts';
import { SignalRelay } from './signal-relay.ts';
import type { TemporaryKey } from './temporary-key.ts';
import { formatTime } from '../../keys/time.ts';

export interface RunOptions {
  command: string;
  args: readonly string[];
  /** The environment of the command, without the key. */
  environment: NodeJS.ProcessEnv;
  /** The environment variable for the secret. */
  variable: string;
  create: () => Promise<TemporaryKey>;
  /** Shows a line to the user. */
  note: (text: string) => Promise<void>;
}

/**
 * Runs a command with a temporary key in its environment. The key is deleted when the command ends, however it ends, or
 * as soon as this process is told to terminate: the command may take long to comply.
 * @returns the exit code for this process
 * @throws CliError COMMAND_NOT_FOUND or COMMAND_NOT_RUN; what `create` throws
 */
export async function runWithKey({ command, args, environment, variable, create, note }: RunOptions): Promise<number> {
  let key: TemporaryKey | undefined;
  // Listening starts before the key exists, so that no signal leaves it behind. A failed removal is retried at the end.
  const signals = new SignalRelay(() => void key?.remove().catch(() => {}));
  try {
    key = await create();
    let removed = false;
    let code: number;
    try {
      const env = { ...environment, [variable]: key.secret };
      const runIt = async () => (signals.first ? exitCodeOf(signals.first) : run(command, args, env, signals));
      code = await debugTimed('another command was run', runIt, (exit) => ({ program: printable(command), exit }));
    } finally {
      removed = await remove(key, note);
    }
    return removed ? code : code || 1;
  } finally {
    signals.stop();
  }
}

/** Runs a command on this process's own streams, and waits until it exits. @returns its exit code */
function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv, signals: SignalRelay): Promise<number> {
  return new Promise<number>((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', env });
    signals.passTo(child);
    child.on('error', (error) => {
      // Once the child runs, this means that it could not be signalled, as when another user owns it: keep waiting.
      if (child.pid === undefined) reject(error);
    });
    child.once('exit', (code, signal) => resolve(signal ? exitCodeOf(signal) : (code ?? 1)));
  }).catch((error: NodeJS.ErrnoException) => {
    throw startError(command, error);
  });
}

/** Follows the exit codes of shells: 127 for a command that was not found, 126 for one that can't be executed. */
function startError(command: string, error: NodeJS.ErrnoException): CliError {
  const shown = `"${printable(command)}"`;
  if (error.code === 'ENOENT')
    return new CliError('COMMAND_NOT_FOUND', `The command ${shown} was not found. Check its name, and PATH.`, {
      cause: error,
    });
  const reason =
    error.code === 'EACCES'
      ? 'permission denied, or it is not executable. Make it executable, or name the program that runs it'
      : `${error.code ?? error.message}. Check its path`;
  return new CliError('COMMAND_NOT_RUN', `The command ${shown} could not be run: ${reason}.`, { cause: error });
}

/** Deletes the key. A failure is reported, not thrown: it must not hide the command's own result. */
async function remove(key: TemporaryKey, note: RunOptions['note']): Promise<boolean> {
  try {
    await key.remove();
    return true;
  } catch (error) {
    const { code, message } = presentError(error);
    const reason = message.replaceAll('\n', ' ');
    const expiry = key.expiresAt === null ? '' : ` It expires at ${formatTime(key.expiresAt)}.`;
    await note(`Error: The temporary key "${key.name}" could not be deleted (${code}): ${reason}${expiry}`);
    return false;
  }
}
