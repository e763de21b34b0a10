/** An exit code of the program. */
export interface ExitCode {
  exit: string;
  meaning: string;
  /** The codes of the errors that lead to it. */
  codes: readonly string[];
}

/** All exit codes. Every code of an error that is not named here exits with 1. */
export const EXIT_CODES: readonly ExitCode[] = [
  { exit: '0', meaning: 'Success.', codes: [] },
  {
    exit: '1',
    meaning:
      'A failure; the error says why. Also: `scan` could not read something, `log --verify` found something wrong, ' +
      '`apply --dry-run` or `routes check` failed for any reason, `doctor` found a failure, `backup` found that the ' +
      'audit log is broken.',
    codes: [],
  },
  {
    exit: '2',
    meaning: 'Wrong flags or an invalid value: nothing was done. `apply --dry-run`: there are changes.',
    codes: [
      'USAGE',
      'NAME_INVALID',
      'DESCRIPTION_INVALID',
      'NO_GRANTS',
      'ROLE_INVALID',
      'PERMISSION_INVALID',
      'EXPIRY_INVALID',
      'LIMIT_INVALID',
      'NETWORK_INVALID',
      'SECRET_INVALID',
      'INPUT_INVALID',
      'DECLARATION_INVALID',
      'CONFIG_INVALID',
      'SERVER_INSECURE',
      'STORE_REQUIRED',
    ],
  },
  { exit: '3', meaning: '`verify`: the secret is not valid. `scan`: a live key was found.', codes: [] },
  { exit: '4', meaning: '`can`: no. `verify`: the secret is valid, but lacks the permission.', codes: [] },
  { exit: '126', meaning: '`exec`: the command could not be run.', codes: ['COMMAND_NOT_RUN'] },
  { exit: '127', meaning: '`exec`: the command was not found.', codes: ['COMMAND_NOT_FOUND'] },
  { exit: '130', meaning: 'Cancelled at a prompt.', codes: ['CANCELLED'] },
  {
    exit: '128 + n',
    meaning:
      'Ended by signal n, such as 143 by SIGTERM; the error says what that leaves. ' +
      '141, without an error: the program that read the output has ended.',
    codes: ['INTERRUPTED'],
  },
  {
    exit: 'any',
    meaning: '`exec`: the exit code of its command, or 128 plus the signal that ended it.',
    codes: [],
  },
];

/** The exit code for the code of an error. */
export function exitOf(code: string): number {
  return Number.parseInt(EXIT_CODES.find(({ codes }) => codes.includes(code))?.exit ?? '1', 10);
}
