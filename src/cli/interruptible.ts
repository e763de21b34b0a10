import { InterruptedError } from './errors.ts';
import type { ProgressReport } from '../keys/progress.ts';
import { TERMINATING_SIGNALS } from './signals.ts';

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
  const heard: { signal?: NodeJS.Signals } = {};
  const listener = (signal: NodeJS.Signals) => void (heard.signal ??= signal);
  const listen = () => TERMINATING_SIGNALS.forEach((signal) => process.on(signal, listener));
  const leave = () => TERMINATING_SIGNALS.forEach((signal) => process.off(signal, listener));
  listen();
  try {
    return await work({
      by: (report) => async (done, total) => {
        if (heard.signal) throw new InterruptedError(heard.signal, outcome);
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
    throw heard.signal ? new InterruptedError(heard.signal, outcome) : error;
  } finally {
    leave();
  }
}
