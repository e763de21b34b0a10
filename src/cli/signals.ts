import { constants } from 'node:os';
import { setImmediate } from 'node:timers/promises';

/** The signals with which a user, a supervisor or a closing terminal ends a program. */
export const TERMINATING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** The exit code by which a shell reports that a signal ended a program. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/**
 * Waits for this long, in milliseconds, or until a signal comes that somebody in this process listens to. Others end
 * the process by themselves.
 * @returns the signal that ended the wait
 */
export function waitUnlessSignalled(ms: number): Promise<NodeJS.Signals | undefined> {
  const handled = TERMINATING_SIGNALS.filter((signal) => process.listenerCount(signal) > 0);
  return new Promise((resolve) => {
    const end = (signal?: NodeJS.Signals) => {
      clearTimeout(timer);
      for (const name of handled) process.off(name, end);
      resolve(signal);
    };
    const timer = setTimeout(end, ms);
    for (const name of handled) process.on(name, end);
  });
}

/** Holds back the signals that would end this process, so that it can finish what it must not leave half done. */
export class HeldSignals {
  #first: NodeJS.Signals | undefined;
  readonly #listener = (signal: NodeJS.Signals) => void (this.#first ??= signal);

  /** From now on signals are held back. */
  hold(): void {
    for (const signal of TERMINATING_SIGNALS) {
      process.off(signal, this.#listener);
      process.on(signal, this.#listener);
    }
  }

  /** The first signal that has come by now. */
  async first(): Promise<NodeJS.Signals | undefined> {
    // A signal is received when the event loop polls, which it has surely done once by the second of these.
    await setImmediate();
    await setImmediate();
    return this.#first;
  }

  /** Restores the default effect of the signals. @returns the first signal that was held back */
  async release(): Promise<NodeJS.Signals | undefined> {
    const first = await this.first();
    for (const signal of TERMINATING_SIGNALS) process.off(signal, this.#listener);
    return first;
  }
}
