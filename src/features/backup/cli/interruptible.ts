import { InterruptedError } from '../../../cli/errors.ts';
import { TERMINATING_SIGNALS } from '../../../cli/signals.ts';
import type { ProgressReport } from '../../../keys/basics/index.ts';

export interface Stoppable {
  /** Makes a progress report that ends the work after a signal. */
  by(report: ProgressReport): ProgressReport;
  /** Runs work that waits for the user, during which signals have their usual effect. */
  asking<Result>(work: () => Promise<Result>): Promise<Result>;
}

/**
 * Runs work that a signal ends at its next progress report, so that it can clean up.
 * @param outcome the state of the work, as a sentence
 * @throws InterruptedError; errors of `work`
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
    // Another error may have reported the failure already.
    throw received.signal ? new InterruptedError(received.signal, outcome) : error;
  } finally {
    leave();
  }
}
