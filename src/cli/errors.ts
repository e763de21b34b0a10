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

/** The sentence for an error of the output after a successful change. */
export const CHANGES_MADE = 'The changes were made.';

/** A signal ended a command early. */
export class InterruptedError extends CliError {
  readonly signal: NodeJS.Signals;
  readonly exit: number;

  /** @param outcome the state of the work, as a sentence */
  constructor(signal: NodeJS.Signals, outcome: string) {
    super('INTERRUPTED', `Ended by ${signal}. ${outcome}`);
    this.signal = signal;
    this.exit = exitCodeOf(signal);
  }
}

/** The reader of the output has exited, like `head`: the command ends silently. */
export class ReaderGoneError extends CliError {
  /** Like programs that SIGPIPE ends. */
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

/** Turns any thrown value into the user's view: a message, a stable code and an exit code. */
export function presentError(error: unknown): PresentedError {
  const { code, message } = explain(error);
  const remedy = isKeysError(error) ? remedyIn('flags', error) : undefined;
  const exit = error instanceof InterruptedError || error instanceof ReaderGoneError ? error.exit : exitCodeFor(code);
  return { code, message: shownText(remedy ? `${message} ${remedy}` : message), exit };
}

/**
 * The user's view of an error of a command of a plugin: its own message, with a code of ours or of the plugin.
 * @returns no exit code if the error has its own
 */
export function presentPluginError(error: unknown): Omit<PresentedError, 'exit'> & { exit?: number } {
  if (isKeysError(error)) return presentError(error);
  const code = isParserError(error) && 'parse' in error ? 'USAGE' : 'UNEXPECTED';
  return { code, message: shownText(error instanceof Error ? error.message : String(error)) };
}

function explain(error: unknown): { code: string; message: string } {
  if (error instanceof CliError || isKeysError(error)) return { code: error.code, message: error.message };
  if (isParserError(error)) return { code: 'USAGE', message: 'The command was used incorrectly.' };
  return {
    code: 'UNEXPECTED',
    message: 'svc-api failed unexpectedly. Run it again with LOG_LEVEL=debug to see why.',
  };
}

/** An error of oclif's parser. Its members identify it, since a host may have another copy of the classes. */
export interface ParserError extends Error {
  flags?: readonly string[];
  /** Unexpected arguments, as typed, or missing ones. */
  args?: unknown;
}

/** True if oclif refused the flags or arguments. Its message repeats values, and must not be shown unchanged. */
export function isParserError(error: unknown): error is ParserError {
  return error instanceof Error && 'oclif' in error && !('code' in error && error.code !== undefined);
}

/**
 * An error of oclif that is safe to show. It repeats input, such as the name of an unknown command: secrets are
 * redacted, and control characters are made visible.
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
 * A failure that was already reported to the user. It is thrown, with its code and message, to the program that ran the
 * command, which can be a host's `config.runCommand`.
 */
export class ReportedFailure extends Error {
  /** Stable, as in the printed JSON. */
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
