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
