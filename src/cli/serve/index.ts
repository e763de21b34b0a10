/** What the commands share that serve. */
export { guardFlags, readGuard, upstreamArg } from './guard-flags.ts';
export { clockFlag, readOptions, servingFlags } from './options.ts';
export { ServingCommand } from './serving-command.ts';
