import * as Flags from '@oclif/core/flags';

/** For commands that ask for values. */
export const noInputFlag = Flags.boolean({
  description: 'Never ask for anything: what is missing is an error, as it is without a terminal.',
  helpGroup: 'GLOBAL',
});

/** For commands that ask for confirmation. */
export const yesFlag = Flags.boolean({
  description: 'Answer every request for confirmation with yes.',
  helpGroup: 'GLOBAL',
});
