import type { SecretDelivery } from '../keys/changes/delivery.ts';
import { isKeysError } from '../keys/errors.ts';
import { CliError, InterruptedError } from './errors.ts';
import { HeldSignals } from './signals.ts';

/**
 * Runs a change that makes secrets, so that it is made and its secrets are delivered, or neither: an output that fails
 * reverts it, and so does a signal that comes after it was committed and before its secrets are out, also where they
 * wait for a reader who does not read.
 * @param reverted says what that leaves, as a sentence
 * @throws CliError OUTPUT_FAILED, INTERRUPTED; what `change` throws
 */
export async function deliverSecrets<Change, Result>(
  { prepare, deliver }: SecretDelivery<Change>,
  reverted: string,
  change: (delivery: SecretDelivery<Change>) => Promise<Result>,
): Promise<Result> {
  const signals = new HeldSignals();
  let interrupted = false;
  const interruptedBy = (signal: NodeJS.Signals) => {
    interrupted = true;
    return new InterruptedError(signal, reverted);
  };
  try {
    return await change({
      begin: () => signals.hold(),
      prepare: (made) => {
        signals.hold();
        prepare?.(made);
      },
      deliver: async (made) => {
        const signal = await signals.first();
        if (signal) throw interruptedBy(signal);
        try {
          await deliver(made);
        } catch (error) {
          if (isKeysError(error)) throw error;
          if (error instanceof InterruptedError) throw interruptedBy(error.signal);
          throw new CliError('OUTPUT_FAILED', `${(error as Error).message} ${reverted}`, { cause: error });
        }
      },
    });
  } finally {
    const signal = await signals.release();
    if (signal && !interrupted) process.kill(process.pid, signal);
  }
}
