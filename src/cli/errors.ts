import { isKeysError, printable, remedyIn } from '../keys/basics/index.ts';
import { type CliErrorCode, exitCodeFor, exitCodeOf } from './error-codes.ts';

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
