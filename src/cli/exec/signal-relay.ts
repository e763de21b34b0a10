import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { isatty } from 'node:tty';

/** The signals by which a person, a supervisor or a closing terminal ends a program. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
/** Those that a terminal sends at Ctrl-C and Ctrl-\, to all processes in its foreground. */
const TYPED: ReadonlySet<NodeJS.Signals> = new Set<NodeJS.Signals>(['SIGINT', 'SIGQUIT']);

/**
 * Takes the signals that would end this process, and passes them on to a child while there is one. From the start until
 * `stop`, this process outlives them.
 */
export class SignalRelay {
  /** The first signal that came. */
  first: NodeJS.Signals | undefined;
  #child: ChildProcess | undefined;
  readonly #onFirst: () => void;
  readonly #listener = (signal: NodeJS.Signals) => this.#take(signal);

  /** @param onFirst is called at the first signal, after the child has got it */
  constructor(onFirst: () => void) {
    this.#onFirst = onFirst;
    for (const signal of ENDING) process.on(signal, this.#listener);
  }

  /** From now on signals go to this child, as long as it runs. */
  passTo(child: ChildProcess): void {
    this.#child = child;
  }

  /** Gives the signals their usual effect back. */
  stop(): void {
    for (const signal of ENDING) process.off(signal, this.#listener);
  }

  #take(signal: NodeJS.Signals): void {
    if (!(TYPED.has(signal) && inForeground())) this.#child?.kill(signal);
    if (this.first) return;
    this.first = signal;
    this.#onFirst();
  }
}

/** The exit code by which a shell reports that a signal ended a program. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/**
 * Whether what is typed at the terminal reaches this process, and with it the child, which is in the same process group.
 * That stdin is a terminal does not tell: Ctrl-C also ends a program whose stdin is a file, and never one in the background.
 */
function inForeground(): boolean {
  try {
    // After the program's name, which may hold anything: state, parent, group, session, terminal, foreground group.
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foreground;
  } catch {
    return isatty(0); // No /proc: the next best guess.
  }
}
