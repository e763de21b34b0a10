import { defineErrors, ERRORS, type ErrorTable } from '../keys/basics/index.ts';
import { constants } from 'node:os';

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
  PLUGIN_FAILED: {
    meaning: 'A plugin could not be installed or uninstalled.',
    causes: [
      'npm is not installed',
      'npm has failed, which says why on stderr',
      'the path does not exist',
      'the package is no oclif plugin',
      'the `package.json` in the data folder cannot be read or written',
    ],
    remedy: 'Check the name or the path. See [Plugins](plugins.md).',
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

export type CliErrorCode = keyof typeof CLI_ERRORS | 'USAGE' | 'OUTPUT_FAILED';

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

/** The exit code by which a shell reports that a signal ended a program. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}
