import { isKeysError } from '../keys/basics/index.ts';
import type { SecretDelivery } from '../keys/changes/index.ts';
import { CliError, InterruptedError } from './errors.ts';
import { HeldSignals } from './signals.ts';

/** A delivery of secrets. If it runs a program, it handles signals itself, and reports those that ended the program. */
interface SignalledDelivery<Change> extends Pick<SecretDelivery<Change>, 'prepare'> {
  deliver: (change: Change, signals: HeldSignals) => void | Promise<void>;
}

/**
 * Runs a change that makes secrets, so that both the change and the delivery happen, or neither: a failed output
 * reverts it, and so does a signal between its commit and the output of its secrets, even while they wait for a stopped
 * reader.
 * @param reverted the result of reverting, as a sentence
 * @throws CliError OUTPUT_FAILED, INTERRUPTED; errors of `change`
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
  // A failed change reports its own error instead.
  if (signal) process.kill(process.pid, signal);
  return result;
}
