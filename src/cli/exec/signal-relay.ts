import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isatty } from 'node:tty';
import { TERMINATING_SIGNALS } from '../signals.ts';

/** Those that a terminal sends on Ctrl-C and Ctrl-\, to all processes of its foreground group. */
const TYPED: ReadonlySet<NodeJS.Signals> = new Set<NodeJS.Signals>(['SIGINT', 'SIGQUIT']);

/**
 * Catches the signals that would end this process, from construction until `stop`, and passes them on to a child while
 * it runs.
 */
export class SignalRelay {
  /** The first signal received. */
  first: NodeJS.Signals | undefined;
  #child: ChildProcess | undefined;
  readonly #onFirst: () => void;
  readonly #listener = (signal: NodeJS.Signals) => this.#handle(signal);

  /** @param onFirst is called on the first signal, after it was passed on */
  constructor(onFirst: () => void) {
    this.#onFirst = onFirst;
    for (const signal of TERMINATING_SIGNALS) process.on(signal, this.#listener);
  }

  /** Passes signals on to this child from now on. */
  passTo(child: ChildProcess): void {
    this.#child = child;
  }

  /** Restores the default effect of the signals. */
  stop(): void {
    for (const signal of TERMINATING_SIGNALS) process.off(signal, this.#listener);
  }

  #handle(signal: NodeJS.Signals): void {
    if (!(TYPED.has(signal) && inForeground())) this.#child?.kill(signal);
    if (this.first) return;
    this.first = signal;
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
