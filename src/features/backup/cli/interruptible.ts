import { InterruptedError } from '../../../cli/errors.ts';
import { TERMINATING_SIGNALS } from '../../../cli/signals.ts';
import type { ProgressReport } from '../../../keys/basics/index.ts';

export interface Stoppable {
  /** Makes a progress report that ends the work after a signal. */
  by(report: ProgressReport): ProgressReport;
  /** Runs work that waits for the user. A signal ends it at once. */
  asking<Result>(work: () => Promise<Result>): Promise<Result>;
}

/**
 * Runs work that a signal ends while it asks the user, or at its next progress report, so that it can clean up.
 * @param outcome the state of the work, as a sentence
 * @throws InterruptedError; errors of `work`
 */
export async function interruptible<Result>(
  outcome: string,
  work: (stoppable: Stoppable) => Promise<Result>,
): Promise<Result> {
  let interruption: InterruptedError | undefined;
  const { promise: interrupted, reject } = Promise.withResolvers<never>();
  interrupted.catch(() => {}); // Without a question, nothing waits for it.
  const listener = (signal: NodeJS.Signals) => reject((interruption ??= new InterruptedError(signal, outcome)));
  for (const signal of TERMINATING_SIGNALS) process.on(signal, listener);
  try {
    return await work({
      by: (report) => async (done, total) => {
        if (interruption) throw interruption;
        await report(done, total);
      },
      asking: (ask) => Promise.race([ask(), interrupted]),
    });
  } catch (error) {
    // Another error may have reported the failure already.
    throw interruption ?? error;
  } finally {
    for (const signal of TERMINATING_SIGNALS) process.off(signal, listener);
  }
}
