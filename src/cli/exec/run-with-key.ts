import { spawn } from 'node:child_process';
import { printable } from '../../keys/text.ts';
import { CliError, presentError } from '../errors.ts';
import { exitCodeOf, SignalRelay } from './signal-relay.ts';
import type { TemporaryKey } from './temporary-key.ts';
import { formatTime } from '../../keys/time.ts';

export interface RunOptions {
  command: string;
  args: readonly string[];
  /** The environment variable that gets the secret. */
  variable: string;
  create: () => Promise<TemporaryKey>;
  /** Writes a line for the user. */
  note: (text: string) => void;
}

/**
 * Runs a command with a temporary key in its environment. The key is deleted when the command ends, however it ends, and
 * already when this process gets a signal to end: the command may go on for long after it.
 * @returns the exit code to end with
 * @throws CliError COMMAND_NOT_FOUND or COMMAND_NOT_RUN; what `create` throws
 */
export async function runWithKey({ command, args, variable, create, note }: RunOptions): Promise<number> {
  let key: TemporaryKey | undefined;
  // Before the key is there: a signal in between must not leave it behind. A removal that fails is tried again at the end.
  const signals = new SignalRelay(() => void key?.remove().catch(() => {}));
  try {
    key = await create();
    let removed = false;
    let code: number;
    try {
      const env = { ...process.env, [variable]: key.secret };
      code = signals.first ? exitCodeOf(signals.first) : await run(command, args, env, signals);
    } finally {
      removed = await remove(key, note);
    }
    return removed ? code : code || 1;
  } finally {
    signals.stop();
  }
}

/** Runs a command on our own streams, and waits for its end. @returns its exit code */
function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv, signals: SignalRelay): Promise<number> {
  return new Promise<number>((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', env });
    signals.passTo(child);
    child.on('error', (error) => {
      // Of one that runs, it says that a signal was not let through, as to a child of another user: that one is waited for.
      if (child.pid === undefined) reject(error);
    });
    child.once('exit', (code, signal) => resolve(signal ? exitCodeOf(signal) : (code ?? 1)));
  }).catch((error: NodeJS.ErrnoException) => {
    throw startError(command, error);
  });
}

/** The codes are those of a shell: 127 for a command that is not there, 126 for one that can't be run. */
function startError(command: string, error: NodeJS.ErrnoException): CliError {
  const shown = `"${printable(command)}"`;
  if (error.code === 'ENOENT')
    return new CliError('COMMAND_NOT_FOUND', `The command ${shown} was not found.`, { cause: error });
  const reason =
    error.code === 'EACCES' ? 'it is not executable, or may not be executed' : (error.code ?? error.message);
  return new CliError('COMMAND_NOT_RUN', `The command ${shown} could not be run: ${reason}.`, { cause: error });
}

/** Deletes the key. What the command did counts for more than a failure here: that is said, not thrown. */
async function remove(key: TemporaryKey, note: RunOptions['note']): Promise<boolean> {
  try {
    await key.remove();
    return true;
  } catch (error) {
    const { code, message } = presentError(error);
    const end = key.expiresAt === null ? '' : ` It ends by itself at ${formatTime(key.expiresAt)}.`;
    note(
      `Error: The temporary key "${key.name}" could not be deleted (${code}): ${message.replaceAll('\n', ' ')}${end}`,
    );
    return false;
  }
}
