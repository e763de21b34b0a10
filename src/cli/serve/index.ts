/** What the commands share that serve. */
export { readUpstream } from './asked-upstream.ts';
export { readNumber, readOptions, servingFlags } from './options.ts';
export { ServingCommand } from './serving-command.ts';
