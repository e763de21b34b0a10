import { defineErrors } from './table.ts';

/** Errors of the command line itself. */
export const CLI_ERRORS = defineErrors({
  CANCELLED: {
    exit: 130,
    page: false,
    meaning: 'You left a prompt, or answered a question with no. Nothing was changed.',
    causes: ['Ctrl-C', 'the terminal was closed'],
    remedy: 'Run the command again. To answer questions in advance, pass `--yes` and the flags for the values.',
  },
  INTERRUPTED: {
    exit: 128,
    page: false,
    meaning: 'A signal ended the command early. The error says what was changed.',
    causes: ['Ctrl-C', 'a supervisor stopped it, or its job ended', 'the reader of its output exited'],
    remedy: 'Run the command again. If a secret was not delivered, the key was not created, or keeps its old secret.',
  },
  COMMAND_NOT_FOUND: {
    exit: 127,
    meaning: '`apikey exec` did not find the command to run.',
    causes: ['the command is misspelled, or is not in `PATH`', 'it is built into the shell, such as `cd` or an alias'],
    remedy: "Check the command. Run shell built-ins through a shell: `sh -c '…'`.",
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
      'npm failed. Its output on stderr says why',
      'the path does not exist',
      'the package is not an oclif plugin',
      'the `package.json` in the data folder cannot be read or written',
    ],
    remedy: 'Check the name or the path. See [Plugins](plugins.md).',
  },
  CLOCK_BEHIND: {
    meaning:
      "The machine's clock is over a minute behind the newest entry of the audit log. `serve` and `guard` do not start.",
    causes: [
      'the machine has no clock of its own, like a Raspberry Pi, and has not reached a time server yet',
      'the clock was set back, or was ahead when the last change was made',
    ],
    remedy: 'Set the clock. If it is right, start with `--accept-clock`: see [a wrong clock](backup.md#a-wrong-clock).',
  },
  UNEXPECTED: {
    meaning: 'An unexpected error. Either svc-api has a defect, or something in its environment is broken.',
    causes: ['an incomplete installation', 'a defect in svc-api'],
    remedy: 'Run the command again with `LOG_LEVEL=debug` to see the reason. Secrets in it are redacted.',
  },
});
