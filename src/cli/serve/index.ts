/** The base of commands that serve. */
export { clockFlag, readNumber, readOptions, servingFlags } from './options.ts';
export { ServingCommand } from './serving-command.ts';
