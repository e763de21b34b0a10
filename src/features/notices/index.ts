/** Delivers notices by channels: signs, sends, tries again. */
export { attempt, readDestination } from './destination.ts';
