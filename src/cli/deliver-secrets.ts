import { isKeysError } from '../keys/basics/index.ts';
import type { SecretDelivery } from '../keys/changes/index.ts';
import { CliError, InterruptedError } from './errors.ts';
import { HeldSignals } from './signals.ts';

/** A delivery of secrets. One that runs a program handles signals itself, and reports what they ended. */
interface SignalledDelivery<Change> extends Pick<SecretDelivery<Change>, 'prepare'> {
  deliver: (change: Change, signals: HeldSignals) => void | Promise<void>;
}

/**
 * Runs a change that makes secrets, so that it is made and its secrets are delivered, or neither: an output that fails
 * reverts it, and so does a signal that comes after it was committed and before its secrets are out, also where they
 * wait for a reader who does not read.
 * @param reverted says what that leaves, as a sentence
 * @throws CliError OUTPUT_FAILED, INTERRUPTED; what `change` throws
 */
export async function deliverSecrets<Change, Result>(
  { prepare, deliver }: SignalledDelivery<Change>,
  reverted: string,
  change: (delivery: SecretDelivery<Change>) => Promise<Result>,
): Promise<Result> {
  const signals = new HeldSignals();
  let signal: NodeJS.Signals | undefined;
  let result: Result;
  try {
    result = await change({
      begin: () => signals.hold(),
      prepare: (made) => {
        signals.hold();
        prepare?.(made);
      },
      deliver: async (made) => {
        const early = await signals.first();
        if (early) throw new InterruptedError(early, reverted);
        try {
          await deliver(made, signals);
        } catch (error) {
          if (isKeysError(error)) throw error;
          if (error instanceof InterruptedError) throw new InterruptedError(error.signal, reverted);
          throw new CliError('OUTPUT_FAILED', `${(error as Error).message} ${reverted}`, { cause: error });
        }
      },
    });
  } finally {
    signal = await signals.release();
  }
  // A change that failed says so instead.
  if (signal) process.kill(process.pid, signal);
  return result;
}
