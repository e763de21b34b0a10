import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { isatty } from 'node:tty';
import {
  defineErrors,
  ERRORS,
  type ErrorTable,
  isKeysError,
  printable,
  type ProgressReport,
  remedyIn,
} from '../keys/basics/index.ts';
import type { SecretDelivery } from '../keys/changes/index.ts';

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

/** Errors of the command line itself. */
export const CLI_ERRORS = defineErrors({
  CANCELLED: {
    exit: 130,
    page: false,
    meaning: 'A prompt was left, or a question was answered with no. Nothing was changed.',
    causes: ['Ctrl-C', 'the terminal was closed'],
    remedy: 'Run the command again. `--yes` answers requests for confirmation; flags answer all other questions.',
  },
  INTERRUPTED: {
    exit: 128,
    page: false,
    meaning: 'A signal ended the command before it was done; the error says what that leaves.',
    causes: ['Ctrl-C', 'a supervisor, or the end of a job, stopped it', 'nobody read what it had written'],
    remedy: 'Run the command again. A key whose secret was not delivered does not exist, or is as before.',
  },
  COMMAND_NOT_FOUND: {
    exit: 127,
    meaning: '`apikey exec` did not find the command that it was to run.',
    causes: ['the command is misspelled, or is not in `PATH`', 'it is a word of the shell, such as `cd` or an alias'],
    remedy: "Check the command. What only a shell knows needs one: `sh -c '…'`.",
  },
  COMMAND_NOT_RUN: {
    exit: 126,
    meaning: '`apikey exec` could not run the command.',
    causes: ['its file is not executable', 'it is a folder, or made for another system'],
    remedy: 'Make it executable, or name the program that runs it.',
  },
  CLOCK_BEHIND: {
    meaning:
      "The machine's clock is over a minute behind the newest entry of the audit log. `serve` and `guard` do not start.",
    causes: [
      'the machine has no clock of its own, as a Raspberry Pi, and has not asked a time server yet',
      'the clock was set back, or was ahead when the last change was made',
    ],
    remedy: 'Set the clock. If it is right, start with `--accept-clock`: see [a wrong clock](backup.md#a-wrong-clock).',
  },
  WEBHOOK_FAILED: {
    meaning:
      'The webhook did not accept the test notice that `notices test` has sent; the error says what it answered.',
    causes: [
      'nobody listens at its address, or its certificate is not trusted here',
      'the receiver has another secret, or a clock that is wrong: mostly 401',
      'the receiver fails, takes longer than 15 seconds, or redirects',
    ],
    remedy: "Look into the receiver's log, by the id of the notice. See [Receiving](notices.md#receiving).",
  },
  UNEXPECTED: {
    meaning: 'An unexpected error: a defect in svc-api, or in what it runs on.',
    causes: ['an installation that is not complete', 'a defect in svc-api'],
    remedy: 'Run the command again with `LOG_LEVEL=debug` to see the reason, in which secrets are redacted.',
  },
});

/** All codes that a command can fail with. */
export const COMMAND_ERRORS: ErrorTable = { ...ERRORS, ...CLI_ERRORS };

/** All exit codes. */
export const EXIT_CODES: readonly { exit: string; meaning: string }[] = [
  { exit: '0', meaning: 'Success.' },
  {
    exit: '1',
    meaning:
      'A failure; the error says why. Also: `scan` could not read something, `log --verify` found something wrong, ' +
      '`apply --dry-run` or `routes check` failed for any reason, `doctor` found a failure, `backup` found that the ' +
      'audit log is broken, `list --exit-code` found a key.',
  },
  { exit: '2', meaning: 'Invalid input. `apply --dry-run`: there are changes.' },
  { exit: '3', meaning: '`verify`: the secret is not valid. `scan`: a live key was found.' },
  { exit: '4', meaning: '`can`: no. `verify`: the secret is valid, but lacks the permission.' },
  { exit: '126', meaning: '`exec`: the command could not be run.' },
  { exit: '127', meaning: '`exec`: the command was not found.' },
  { exit: '130', meaning: 'Cancelled at a prompt.' },
  {
    exit: '128 + n',
    meaning:
      'Ended by signal n, such as 143 by SIGTERM; the error says what that leaves. ' +
      '141, without an error: the program that read the output has ended.',
  },
  { exit: 'any', meaning: '`exec`: the exit code of its command, or 128 plus the signal that ended it.' },
];

/** The error codes that lead to an exit code; none for 1, which has all others. */
export function codesWith(exit: string): string[] {
  return Object.keys(COMMAND_ERRORS).filter((code) => COMMAND_ERRORS[code]?.exit === Number.parseInt(exit, 10));
}

export function exitCodeFor(code: string): number {
  return COMMAND_ERRORS[code]?.exit ?? 1;
}

export type CliErrorCode = keyof typeof CLI_ERRORS | 'USAGE' | 'OUTPUT_FAILED';

/** An error of the command line itself. */
export class CliError extends Error {
  readonly code: CliErrorCode;

  constructor(code: CliErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What an error says after a change that was made, where its output could not be written. */
export const CHANGES_MADE = 'The changes were made.';

/** A signal ended a command before it was done. */
export class InterruptedError extends CliError {
  readonly signal: NodeJS.Signals;
  readonly exit: number;

  /** @param outcome what that leaves, as a sentence */
  constructor(signal: NodeJS.Signals, outcome: string) {
    super('INTERRUPTED', `Ended by ${signal}. ${outcome}`);
    this.signal = signal;
    this.exit = exitCodeOf(signal);
  }
}

/** The program that read the output has ended, as `head` does: the command ends without a word. */
export class ReaderGoneError extends CliError {
  /** That of programs that SIGPIPE ends. */
  readonly exit = exitCodeOf('SIGPIPE');

  constructor(options?: ErrorOptions) {
    super('OUTPUT_FAILED', 'The output could not be written to stdout (EPIPE).', options);
  }
}

/** An error as the user sees it. */
export interface PresentedError {
  code: string;
  message: string;
  exit: number;
}

/** Turns whatever was thrown into what the user sees: a message, a stable code and an exit code. */
export function presentError(error: unknown): PresentedError {
  const { code, message } = explain(error);
  const remedy = isKeysError(error) ? remedyIn('flags', error) : undefined;
  const exit = error instanceof InterruptedError || error instanceof ReaderGoneError ? error.exit : exitCodeFor(code);
  return { code, message: shownText(remedy ? `${message} ${remedy}` : message), exit };
}

function explain(error: unknown): { code: string; message: string } {
  if (error instanceof CliError || isKeysError(error)) return { code: error.code, message: error.message };
  if (isParserError(error)) return { code: 'USAGE', message: 'The command was used wrongly.' };
  return {
    code: 'UNEXPECTED',
    message: 'svc-api failed unexpectedly. Run it again with LOG_LEVEL=debug to see why.',
  };
}

/** An error of oclif's parser. Which it is tell its members: a host may have another copy of the classes. */
export interface ParserError extends Error {
  flags?: readonly string[];
  /** Arguments that are too many, as typed, or those that are missing. */
  args?: unknown;
}

/** Whether oclif found the flags or arguments wrong. Its message repeats values, and must not be shown as it is. */
export function isParserError(error: unknown): error is ParserError {
  return error instanceof Error && 'oclif' in error && !('code' in error && error.code !== undefined);
}

/**
 * An error of oclif as it may be shown. It repeats what was typed, such as the name of a command that does not exist:
 * secrets are redacted, and control characters are made visible.
 */
export function shownError(error: unknown): Error {
  const shown = error instanceof Error ? error : new Error(String(error));
  shown.message = shownText(shown.message);
  if (shown.stack !== undefined) shown.stack = shownText(shown.stack);
  return shown;
}

/** A text of several lines without secrets and control characters. */
export function shownText(text: string): string {
  return text
    .split('\n')
    .map((line) => printable(line, Number.POSITIVE_INFINITY))
    .join('\n');
}

/**
 * A failure that the user has been told about. The command throws it to the program that ran it, which may be a host's
 * `config.runCommand`, with its code and message.
 */
export class ReportedFailure extends Error {
  /** Stable, as in the JSON that was printed. */
  readonly code: string;
  readonly oclif: { readonly exit: number };
  /** Keeps oclif from printing it again. */
  skipOclifErrorHandling = true;

  constructor({ code, message, exit }: { code: string; message: string; exit: number }) {
    super(message);
    this.code = code;
    this.oclif = { exit };
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
    // What failed may have been told by another error.
    throw received.signal ? new InterruptedError(received.signal, outcome) : error;
  } finally {
    leave();
  }
}

/** Where secrets go. One that runs a program for it looks at the signals itself, and says what they have ended. */
interface SignalledDelivery<Change> extends Pick<SecretDelivery<Change>, 'prepare'> {
  deliver: (change: Change, signals: HeldSignals) => void | Promise<void>;
}

/**
 * Runs a change that makes secrets, so that it is made and its secrets are delivered, or neither: an output that fails
 * reverts it, and so does a signal that comes after it was committed and before its secrets are out, also where they
 * wait for a reader who does not read.
 * @param reverted says what that leaves, as a sentence
 * @throws CliError OUTPUT_FAILED, INTERRUPTED; what `change` throws
 */
export async function deliverSecrets<Change, Result>(
  { prepare, deliver }: SignalledDelivery<Change>,
  reverted: string,
  change: (delivery: SecretDelivery<Change>) => Promise<Result>,
): Promise<Result> {
  const signals = new HeldSignals();
  let signal: NodeJS.Signals | undefined;
  let result: Result;
  try {
    result = await change({
      begin: () => signals.hold(),
      prepare: (made) => {
        signals.hold();
        prepare?.(made);
      },
      deliver: async (made) => {
        const early = await signals.first();
        if (early) throw new InterruptedError(early, reverted);
        try {
          await deliver(made, signals);
        } catch (error) {
          if (isKeysError(error)) throw error;
          if (error instanceof InterruptedError) throw new InterruptedError(error.signal, reverted);
          throw new CliError('OUTPUT_FAILED', `${(error as Error).message} ${reverted}`, { cause: error });
        }
      },
    });
  } finally {
    signal = await signals.release();
  }
  // A change that failed says so instead.
  if (signal) process.kill(process.pid, signal);
  return result;
}
