import { CliError, InterruptedError } from './errors.ts';
import { HeldSignals, TERMINATING_SIGNALS } from './signals.ts';
import type { SecretDelivery } from '../keys/changes/delivery.ts';
import { isKeysError } from '../keys/errors.ts';
import type { ProgressReport } from '../keys/progress.ts';

/** Signals that end work at its next report of progress. */
export interface Stoppable {
  /** Lets a report of progress end the work, once a signal has come. */
  by(report: ProgressReport): ProgressReport;
  /** Runs what waits for the user, whom a signal must not keep waiting: there it has its usual effect. */
  asking<Result>(work: () => Promise<Result>): Promise<Result>;
}

/**
 * Runs work that a signal ends at its next report of progress, so that it can clean up.
 * @param outcome what that leaves, as a sentence
 * @throws InterruptedError; what `work` throws
 */
export async function interruptible<Result>(
  outcome: string,
  work: (stoppable: Stoppable) => Promise<Result>,
): Promise<Result> {
  const received: { signal?: NodeJS.Signals } = {};
  const listener = (signal: NodeJS.Signals) => void (received.signal ??= signal);
  const listen = () => TERMINATING_SIGNALS.forEach((signal) => process.on(signal, listener));
  const leave = () => TERMINATING_SIGNALS.forEach((signal) => process.off(signal, listener));
  listen();
  try {
    return await work({
      by: (report) => async (done, total) => {
        if (received.signal) throw new InterruptedError(received.signal, outcome);
        await report(done, total);
      },
      asking: async (ask) => {
        leave();
        try {
          return await ask();
        } finally {
          listen();
        }
      },
    });
  } catch (error) {
    // What failed may have been told by another error.
    throw received.signal ? new InterruptedError(received.signal, outcome) : error;
  } finally {
    leave();
  }
}

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
