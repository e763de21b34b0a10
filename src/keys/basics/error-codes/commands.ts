import { defineErrors } from './table.ts';

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
  UNEXPECTED: {
    meaning: 'An unexpected error: a defect in svc-api, or in what it runs on.',
    causes: ['an installation that is not complete', 'a defect in svc-api'],
    remedy: 'Run the command again with `LOG_LEVEL=debug` to see the reason, in which secrets are redacted.',
  },
});
