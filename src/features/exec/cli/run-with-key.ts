import { spawn } from 'node:child_process';
import { exitCodeOf } from '../../../cli/error-codes.ts';
import { presentError } from '../../../cli/errors.ts';
import { HeldSignals, waitUnlessSignalled } from '../../../cli/signals.ts';
import { debugTimed, formatTime, KeysError, printable } from '../../../keys/basics/index.ts';
import { learnedText } from './learned-use.ts';
import type { TemporaryKey } from './temporary-key.ts';

interface RunOptions {
  command: string;
  args: readonly string[];
  /** The environment of the command, without the key. */
  environment: NodeJS.ProcessEnv;
  /** The environment variable for the secret. */
  variable: string;
  create: () => Promise<TemporaryKey>;
  /** True to print the grants that the command used. */
  learns?: boolean;
  /** Shows a line to the user. */
  note: (text: string) => Promise<void>;
}

/**
 * Runs a command with a temporary key in its environment. The key is deleted when the command ends, in any way, or as
 * soon as this process gets a signal to terminate, since the command may take long to obey.
 * @returns the exit code for this process
 * @throws KeysError COMMAND_NOT_FOUND or COMMAND_NOT_RUN; errors of `create`
 */
export async function runWithKey({
  command,
  args,
  environment,
  variable,
  create,
  learns,
  note,
}: RunOptions): Promise<number> {
  let key: TemporaryKey | undefined;
  // Listens before the key exists, so that no signal leaves it behind. A failed removal is tried again at the end.
  const signals = new HeldSignals(() => void key?.remove().catch(() => {}));
  signals.hold();
  try {
    key = await create();
    let removed = false;
    let code: number;
    try {
      const env = { ...environment, [variable]: key.secret };
      const runIt = async () => {
        const signal = await signals.first();
        return signal ? exitCodeOf(signal) : run(command, args, env, signals);
      };
      code = await debugTimed('another command was run', runIt, (exit) => ({ program: printable(command), exit }));
      if (learns && key.learn && !(await signals.first())) await note(await learned(command, key.learn));
    } finally {
      removed = await remove(key, note);
    }
    return removed ? code : code || 1;
  } finally {
    await signals.release();
  }
}

/** The grants that a command used, or the error of reading them, which must not hide the command's own result. */
async function learned(command: string, learn: NonNullable<TemporaryKey['learn']>): Promise<string> {
  try {
    return learnedText(command, await learn(waitUnlessSignalled));
  } catch (error) {
    return `Error: The permissions that the command used could not be read: ${presentError(error).message.replaceAll('\n', ' ')}`;
  }
}

/** Runs a command on this process's own streams, and waits until it exits. @returns its exit code */
async function run(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signals: HeldSignals,
): Promise<number> {
  try {
    const [code, signal] = await signals.passTo(spawn(command, args, { stdio: 'inherit', env }));
    return signal ? exitCodeOf(signal) : (code ?? 1);
  } catch (error) {
    throw startError(command, error as NodeJS.ErrnoException);
  }
}

/** Uses the exit codes of shells: 127 for a command that was not found, 126 for one that can't be executed. */
function startError(command: string, error: NodeJS.ErrnoException): KeysError {
  const shown = `"${printable(command)}"`;
  if (error.code === 'ENOENT')
    return new KeysError('COMMAND_NOT_FOUND', `The command ${shown} was not found. Check its name, and PATH.`, {
      cause: error,
    });
  const reason =
    error.code === 'EACCES'
      ? 'permission denied, or it is not executable. Make it executable, or name the program that runs it'
      : `${error.code ?? error.message}. Check its path`;
  return new KeysError('COMMAND_NOT_RUN', `The command ${shown} could not be run: ${reason}.`, { cause: error });
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
