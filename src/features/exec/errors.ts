import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of commands that `exec` runs. */
export const errors = defineErrors({
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
});
