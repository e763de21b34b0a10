import { InterruptedError } from './errors.ts';
import type { ProgressReport } from '../keys/progress.ts';
import { TERMINATING_SIGNALS } from './signals.ts';

/** Lets a report of progress end the work, once a signal has come. */
export type Interruptible = (report: ProgressReport) => ProgressReport;

/**
 * Runs work that a signal ends at its next report of progress, so that it can clean up.
 * @param outcome what that leaves, as a sentence
 * @throws InterruptedError; what `work` throws
 */
export async function interruptible<Result>(
  outcome: string,
  work: (stoppable: Interruptible) => Promise<Result>,
): Promise<Result> {
  const heard: { signal?: NodeJS.Signals } = {};
  const listener = (signal: NodeJS.Signals) => void (heard.signal ??= signal);
  for (const signal of TERMINATING_SIGNALS) process.on(signal, listener);
  try {
    return await work((report) => async (done, total) => {
      if (heard.signal) throw new InterruptedError(heard.signal, outcome);
      await report(done, total);
    });
  } catch (error) {
    // What failed may have been told by another error.
    throw heard.signal ? new InterruptedError(heard.signal, outcome) : error;
  } finally {
    for (const signal of TERMINATING_SIGNALS) process.off(signal, listener);
  }
}
