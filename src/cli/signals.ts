import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { isatty } from 'node:tty';
import type { ProgressReport } from '../keys/basics/index.ts';
import { InterruptedError } from './errors.ts';

/** The signals with which a user, a supervisor or a closing terminal ends a program. */
export const TERMINATING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

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

/** Those that a terminal sends on Ctrl-C and Ctrl-\, to all processes of its foreground group. */
const TYPED: ReadonlySet<NodeJS.Signals> = new Set<NodeJS.Signals>(['SIGINT', 'SIGQUIT']);

/**
 * Holds back the signals that would end this process, so that it can finish what it must not leave half done, and
 * passes them on to a child while it runs.
 */
export class HeldSignals {
  #first: NodeJS.Signals | undefined;
  #child: ChildProcess | undefined;
  readonly #onFirst: () => void;
  readonly #listener = (signal: NodeJS.Signals) => this.#handle(signal);

  /** @param onFirst is called on the first signal, after it was passed on */
  constructor(onFirst: () => void = () => {}) {
    this.#onFirst = onFirst;
  }

  /** From now on signals are held back. */
  hold(): void {
    for (const signal of TERMINATING_SIGNALS) {
      process.off(signal, this.#listener);
      process.on(signal, this.#listener);
    }
  }

  /**
   * Waits until a child exits.
   * @returns its exit code, or the signal that ended it
   * @throws what kept it from starting
   */
  passTo(child: ChildProcess): Promise<[number | null, NodeJS.Signals | null]> {
    this.#child = child;
    return new Promise((resolve, reject) => {
      child.on('error', (error) => {
        // Once the child runs, this means that it could not be signalled, as when another user owns it: keep waiting.
        if (child.pid === undefined) reject(error);
      });
      child.once('exit', (code, signal) => resolve([code, signal]));
    });
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

  #handle(signal: NodeJS.Signals): void {
    if (!(TYPED.has(signal) && inForeground())) this.#child?.kill(signal);
    if (this.#first) return;
    this.#first = signal;
    this.#onFirst();
  }
}

/**
 * Whether this process is in the terminal's foreground group, so that typed signals reach it, and also the child, which
 * is in the same group. Looking at stdin would not tell: Ctrl-C ends a foreground program whose stdin is a file, too.
 */
function inForeground(): boolean {
  try {
    // The program's name may contain anything; after it: state, parent, group, session, terminal, foreground group.
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foreground;
  } catch {
    return isatty(0); // Without /proc, the next best guess.
  }
}

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
    // Another error can have reported the failure already.
    throw received.signal ? new InterruptedError(received.signal, outcome) : error;
  } finally {
    leave();
  }
}
