import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { isatty } from 'node:tty';

/** The signals by which a user, a supervisor or a closing terminal ends a program. */
export const TERMINATING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/**
 * Waits, in milliseconds, or until a signal that this process listens to. Other signals end the process by themselves.
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

/** The signals that a terminal sends on Ctrl-C and Ctrl-\, to all processes of its foreground group. */
const TYPED: ReadonlySet<NodeJS.Signals> = new Set<NodeJS.Signals>(['SIGINT', 'SIGQUIT']);

/**
 * Holds back the signals that would end this process, so that it can finish work that must not be left half done, and
 * passes them on to a child while it runs.
 */
export class HeldSignals {
  #first: NodeJS.Signals | undefined;
  #child: ChildProcess | undefined;
  readonly #onFirst: () => void;
  readonly #listener = (signal: NodeJS.Signals) => this.#handle(signal);

  /** @param onFirst called on the first signal, after it was passed on */
  constructor(onFirst: () => void = () => {}) {
    this.#onFirst = onFirst;
  }

  /** Starts holding back signals. */
  hold(): void {
    for (const signal of TERMINATING_SIGNALS) {
      process.off(signal, this.#listener);
      process.on(signal, this.#listener);
    }
  }

  /**
   * Waits until a child exits.
   * @returns its exit code, or the signal that ended it
   * @throws an error that kept it from starting
   */
  passTo(child: ChildProcess): Promise<[number | null, NodeJS.Signals | null]> {
    this.#child = child;
    return new Promise((resolve, reject) => {
      child.on('error', (error) => {
        // An error while the child runs means that it could not be signalled, such as one of another user: keep
        // waiting.
        if (child.pid === undefined) reject(error);
      });
      child.once('exit', (code, signal) => resolve([code, signal]));
    });
  }

  /** The first signal so far. */
  async first(): Promise<NodeJS.Signals | undefined> {
    // A signal is received when the event loop polls, which has certainly happened by the second of these.
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
 * True if this process is in the terminal's foreground group, so that typed signals reach both it and its child, which
 * is in the same group. Testing stdin is not enough: Ctrl-C also ends a foreground program whose stdin is a file.
 */
function inForeground(): boolean {
  try {
    // The program's name can contain anything; after it: state, parent, group, session, terminal, foreground group.
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foreground;
  } catch {
    return isatty(0); // Without /proc, the next best guess.
  }
}
