import { type CLI_ERRORS, errorEntry, errorTable } from '../keys/basics/index.ts';
import { constants } from 'node:os';

export type CliErrorCode = keyof typeof CLI_ERRORS | 'USAGE' | 'OUTPUT_FAILED';

/** All exit codes. */
export const EXIT_CODES: readonly { exit: string; meaning: string }[] = [
  { exit: '0', meaning: 'Success.' },
  {
    exit: '1',
    meaning:
      'The command failed, and the error says why. `scan`: something could not be read. `log --verify` and `doctor`: ' +
      'something is wrong. `apply --dry-run` and `routes check`: also invalid input. `backup`: the audit log is broken. ' +
      '`list --exit-code`: a key was found. `explain` for a token: it meets no rule.',
  },
  { exit: '2', meaning: 'Invalid input. `apply --dry-run`: there are changes.' },
  { exit: '3', meaning: '`verify`: the secret is not valid. `scan`: a live key was found.' },
  {
    exit: '4',
    meaning:
      '`explain` for a key and a permission: the key is not allowed. `verify`: the secret is valid, but lacks the permission.',
  },
  { exit: '126', meaning: '`exec`: the command could not be run.' },
  { exit: '127', meaning: '`exec`: the command was not found.' },
  { exit: '130', meaning: 'Cancelled at a prompt.' },
  {
    exit: '128 + n',
    meaning:
      'A signal ended the command: n is its number, so SIGTERM makes 143. The error says what was changed. ' +
      '141 without an error: the reader of the output has exited.',
  },
  { exit: 'any', meaning: '`exec`: the exit code of its command, or 128 plus the signal that ended it.' },
];

/** All exit codes, including those of plugins. */
export function allExitCodes(): typeof EXIT_CODES {
  const known = new Set(['1', '128', 'undefined', 'null', ...EXIT_CODES.map(({ exit }) => exit)]);
  const added = new Set(Object.values(errorTable()).map(({ exit }) => `${exit}`));
  return [
    ...EXIT_CODES,
    ...[...added].filter((exit) => !known.has(exit)).map((exit) => ({ exit, meaning: 'From a plugin.' })),
  ];
}

/** The error codes with an exit code; none for 1, the default. */
export function codesWith(exit: string): string[] {
  const entries = Object.entries(errorTable());
  return entries.filter(([, entry]) => entry.exit === Number.parseInt(exit, 10)).map(([code]) => code);
}

export function exitCodeFor(code: string): number {
  return errorEntry(code)?.exit ?? 1;
}

/** The exit code for a program that was ended by a signal, as in shells. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}
